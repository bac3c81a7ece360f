"""Pods that ask device plugins for devices, before and after."""

from __future__ import annotations

from migrate.cases import changed, kept

PLUGINS = [
    changed(
        "two GPUs, of one product",
        """
        # Trains the model.
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: train
          namespace: ml
        spec:
          template:
            spec:
              nodeSelector:
                nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB
                disk: ssd
              containers:
                - name: main
                  image: train:1
                  resources:
                    limits:
                      cpu: "8"
                      nvidia.com/gpu: 2   # both on one node
              restartPolicy: Never
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata:
          name: train-gpu
          namespace: ml
        spec:
          spec:
            devices:
              requests:
                - name: gpu
                  exactly:
                    deviceClassName: gpu.nvidia.com
                    selectors:
                      - cel:
                          expression: device.attributes["gpu.nvidia.com"].productName.replace(" ", "-") == "NVIDIA-A100-SXM4-40GB"
                    allocationMode: ExactCount
                    count: 2
        ---
        # Trains the model.
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: train
          namespace: ml
        spec:
          template:
            spec:
              nodeSelector:
                disk: ssd
              containers:
                - name: main
                  image: train:1
                  resources:
                    limits:
                      cpu: "8"
                      # both on one node
                    claims:
                      - name: gpu
              restartPolicy: Never
              resourceClaims:
                - name: gpu
                  resourceClaimTemplateName: train-gpu
        """,
    ),
    changed(
        "containers with different devices",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          initContainers:
          - name: warm
            resources: {limits: {nvidia.com/gpu: 1}}
          containers:
          - name: a
            resources: {limits: {nvidia.com/gpu: 2}}
          - name: b
            resources:
              limits:
                nvidia.com/mig-1g.5gb.me: "1"
                nvidia.com/gpu: 1
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata:
          name: p-devices
        spec:
          spec:
            devices:
              requests:
              - name: a-gpu
                exactly:
                  deviceClassName: gpu.nvidia.com
                  allocationMode: ExactCount
                  count: 2
              - name: mig-1g-5gb-me
                exactly:
                  deviceClassName: mig.nvidia.com
                  selectors:
                  - cel:
                      expression: device.attributes["gpu.nvidia.com"].profile == "1g.5gb+me"
              - name: b-gpu
                exactly:
                  deviceClassName: gpu.nvidia.com
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          initContainers:
          - name: warm
            resources: {claims: [{name: devices, request: b-gpu}]}
          containers:
          - name: a
            resources: {claims: [{name: devices, request: a-gpu}]}
          - name: b
            resources:
              claims:
              - name: devices
                request: mig-1g-5gb-me
              - name: devices
                request: b-gpu
          resourceClaims:
          - name: devices
            resourceClaimTemplateName: p-devices
        """,
    ),
    changed(
        "an init container that asks for most",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          initContainers:
          - name: shard
            resources: {limits: {amd.com/gpu: 4}}
          containers:
          - name: a
            resources: {limits: {amd.com/gpu: 1}}
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata:
          name: p-gpu
        spec:
          spec:
            devices:
              requests:
              - name: gpu
                exactly:
                  deviceClassName: gpu.amd.com
              - name: shard-gpu
                exactly:
                  deviceClassName: gpu.amd.com
                  allocationMode: ExactCount
                  count: 4
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          initContainers:
          - name: shard
            resources: {claims: [{name: gpu, request: shard-gpu}]}
          containers:
          - name: a
            resources: {claims: [{name: gpu, request: gpu}]}
          resourceClaims:
          - name: gpu
            resourceClaimTemplateName: p-gpu
        """,
        noted=[
            "spec.initContainers[0].resources: asks for more devices than any container after it"
        ],
    ),
    changed(
        "affinity by GPU memory and family",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          affinity:
            nodeAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                nodeSelectorTerms:
                - matchExpressions:
                  - {key: nvidia.com/gpu.memory, operator: In, values: ["40960"]}
                  - {key: zone, operator: In, values: [a]}
                  - {key: nvidia.com/gpu.family, operator: NotIn, values: [hopper]}
          containers:
          - name: a
            resources: {limits: {nvidia.com/gpu: 1}}
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata:
          name: p-gpu
        spec:
          spec:
            devices:
              requests:
              - name: gpu
                exactly:
                  deviceClassName: gpu.nvidia.com
                  selectors:
                  - cel:
                      expression: device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40960Mi")) == 0
                  - cel:
                      expression: '!(device.attributes["gpu.nvidia.com"].architecture.lowerAscii().replace(" ", "-") == "hopper")'
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          affinity:
            nodeAffinity:
              requiredDuringSchedulingIgnoredDuringExecution:
                nodeSelectorTerms:
                - matchExpressions:
                  - {key: zone, operator: In, values: [a]}
          containers:
          - name: a
            resources: {claims: [{name: gpu}]}
          resourceClaims:
          - name: gpu
            resourceClaimTemplateName: p-gpu
        """,
    ),
    changed(
        "a partition on GPUs with some memory, and labels without an attribute",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          nodeSelector:
            nvidia.com/gpu.memory: "40960"
            nvidia.com/gpu.count: "8"
            nvidia.com/gpu.present: "true"
          containers:
          - name: a
            resources: {limits: {nvidia.com/mig-2g.10gb: 1}}
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata:
          name: p-mig-2g-10gb
        spec:
          spec:
            devices:
              requests:
              - name: mig-2g-10gb
                exactly:
                  deviceClassName: mig.nvidia.com
                  selectors:
                  - cel:
                      expression: device.attributes["gpu.nvidia.com"].profile == "2g.10gb"
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          nodeSelector:
            nvidia.com/gpu.memory: "40960"
            nvidia.com/gpu.count: "8"
          containers:
          - name: a
            resources: {claims: [{name: mig-2g-10gb}]}
          resourceClaims:
          - name: mig-2g-10gb
            resourceClaimTemplateName: p-mig-2g-10gb
        """,
        noted=[
            "spec.nodeSelector[nvidia.com/gpu.memory]: stays on the pod",
            "spec.nodeSelector[nvidia.com/gpu.count]: stays on the pod",
        ],
    ),
    changed(
        "a pod with a claim already, on GKE",
        """
        apiVersion: v1
        kind: Pod
        metadata: {generateName: p-}
        spec:
          nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}
          resourceClaims:
          - name: gpu
            resourceClaimName: nic
          containers:
          - name: a
            resources:
              claims:
              - name: gpu
              requests: {nvidia.com/gpu: 1}
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata:
          name: p-gpu-2
        spec:
          spec:
            devices:
              requests:
              - name: gpu
                exactly:
                  deviceClassName: gpu.nvidia.com
                  selectors:
                  - cel:
                      expression: device.attributes["gpu.nvidia.com"].productName == "NVIDIA L4"
        ---
        apiVersion: v1
        kind: Pod
        metadata: {generateName: p-}
        spec:
          resourceClaims:
          - name: gpu
            resourceClaimName: nic
          - name: gpu-2
            resourceClaimTemplateName: p-gpu-2
          containers:
          - name: a
            resources:
              claims:
              - name: gpu
              - name: gpu-2
        """,
    ),
    changed(
        "a list in braces of JSON becomes longer",
        """
        {
          "apiVersion": "v1", "kind": "List",
          "items": [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [
              {"name": "a", "resources": {"limits": {"gpu.intel.com/xe": "1"}}}]}}
          ]
        }
        """,
        """
        {
          "apiVersion": "v1",
          "kind": "List",
          "items": [
            {
              "apiVersion": "resource.k8s.io/v1",
              "kind": "ResourceClaimTemplate",
              "metadata": {
                "name": "p-gpu"
              },
              "spec": {
                "spec": {
                  "devices": {
                    "requests": [
                      {
                        "name": "gpu",
                        "exactly": {
                          "deviceClassName": "gpu.intel.com"
                        }
                      }
                    ]
                  }
                }
              }
            },
            {
              "apiVersion": "v1",
              "kind": "Pod",
              "metadata": {
                "name": "p"
              },
              "spec": {
                "containers": [
                  {
                    "name": "a",
                    "resources": {
                      "claims": [
                        {
                          "name": "gpu"
                        }
                      ]
                    }
                  }
                ],
                "resourceClaims": [
                  {
                    "name": "gpu",
                    "resourceClaimTemplateName": "p-gpu"
                  }
                ]
              }
            }
          ]
        }
        """,
    ),
    changed(
        "no device at all",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          containers:
          - name: a
            resources: {limits: {nvidia.com/gpu: 0}}
        """,
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          containers:
          - name: a
        """,
        noted=["spec.containers[0].resources: no nvidia.com/gpu"],
    ),
    kept(
        "shares, networks and what is unknown",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}
          containers:
          - name: a
            resources:
              limits:
                nvidia.com/gpu.shared: 1
                vpc.amazonaws.com/efa: 1
                example.org/thing: 1
                memory: 1Gi
        """,
        "spec.containers[0].resources.limits[nvidia.com/gpu.shared]: left as it is: it stands for a share",
        "spec.containers[0].resources.limits[vpc.amazonaws.com/efa]: left as it is: network devices",
        noted=["spec.containers[0].resources.limits[example.org/thing]: left as it is: not known"],
    ),
    kept(
        "a resource that a class answers for",
        """
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata: {name: gpus}
        spec: {extendedResourceName: nvidia.com/gpu}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          containers:
          - name: a
            resources: {limits: {nvidia.com/gpu: 1}}
        """,
    ),
    kept(
        "a number that is none",
        """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          containers:
          - name: a
            resources: {limits: {nvidia.com/gpu: many}}
        """,
        "spec.containers[0].resources.limits[nvidia.com/gpu]: many is not a number",
    ),
    kept(
        "kinds that make pods in ways of their own",
        """
        apiVersion: ray.io/v1
        kind: RayCluster
        metadata: {name: r}
        spec:
          head: {template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}}
        """,
        "spec.head.template.spec.containers[0].resources.limits[nvidia.com/gpu]: left as it is: how",
    ),
    kept(
        "a list of one kind, which cannot take in others",
        """
        apiVersion: v1
        kind: PodList
        items:
        - spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}
        """,
        "items[0].spec.containers[0].resources.limits[nvidia.com/gpu]: left as it is: how",
    ),
    changed(
        "quota",
        """
        apiVersion: v1
        kind: ResourceQuota
        metadata: {name: q}
        spec:
          hard:
            pods: 10
            requests.nvidia.com/gpu: "8"   # a machine
            requests.nvidia.com/mig-1g.5gb: "2"
        """,
        """
        apiVersion: v1
        kind: ResourceQuota
        metadata: {name: q}
        spec:
          hard:
            pods: 10
            gpu.nvidia.com.deviceclass.resource.k8s.io/devices: "8"   # a machine
            requests.nvidia.com/mig-1g.5gb: "2"
        """,
        "spec.hard[requests.nvidia.com/mig-1g.5gb]: quotas count all devices of mig.nvidia.com",
        noted=["spec.hard[requests.nvidia.com/gpu]: now gpu.nvidia.com.deviceclass"],
    ),
]

GANGS = [
    changed(
        "a gang and its pods",
        """
        apiVersion: scheduling.x-k8s.io/v1alpha1
        kind: PodGroup
        metadata: {name: g}
        spec:
          minMember: 8   # all of them
          scheduleTimeoutSeconds: 300
        ---
        apiVersion: v1
        kind: Pod
        metadata:
          name: p
          labels: {scheduling.x-k8s.io/pod-group: g}
        spec:
          containers: []
        """,
        """
        apiVersion: scheduling.k8s.io/v1alpha2
        kind: PodGroup
        metadata: {name: g}
        spec:
          # all of them
          schedulingPolicy:
            gang:
              minCount: 8
        ---
        apiVersion: v1
        kind: Pod
        metadata:
          name: p
          labels: {scheduling.x-k8s.io/pod-group: g}
        spec:
          containers: []
          schedulingGroup:
            podGroupName: g
        """,
        "spec.scheduleTimeoutSeconds: a group waits",
        pod_groups=True,
    ),
    kept(
        "a gang stays unless asked for",
        """
        apiVersion: scheduling.x-k8s.io/v1alpha1
        kind: PodGroup
        metadata: {name: g}
        spec: {minMember: 8}
        """,
        noted=["left as it is; --pod-groups"],
    ),
]
