"""Manifests before and after, by name. `lost` has the field and the first words of what could not be carried over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True, slots=True)
class Case:
    """A manifest, what becomes of it, and what is said."""

    name: str
    before: str
    after: str
    lost: Sequence[str] = ()
    noted: Sequence[str] = ()
    pod_groups: bool = False


def text(content: str) -> str:
    """A manifest without the indentation it has here."""
    return dedent(content).lstrip("\n")


def changed(
    name: str,
    before: str,
    after: str,
    *lost: str,
    noted: Sequence[str] = (),
    pod_groups: bool = False,
) -> Case:
    """A case whose manifest changes."""
    return Case(name, text(before), text(after), lost, noted, pod_groups)


def kept(name: str, before: str, *lost: str, noted: Sequence[str] = ()) -> Case:
    """A case whose manifest stays as it is."""
    return Case(name, text(before), text(before), lost, noted)


ONE_OF_TWO = (
    'device.attributes["gpu.nvidia.com"].productName.lowerAscii().matches("^.*a100.*$")'
    ' && device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0'
    ' && (device.attributes["gpu.nvidia.com"].cudaComputeCapability.compareTo(semver("8.0.0")) == 0'
    ' || device.attributes["gpu.nvidia.com"].architecture.lowerAscii() == "hopper")'
)

VERSIONS = [
    changed(
        "v1beta1 claim",
        """
        apiVersion: resource.k8s.io/v1beta1   # the old one
        kind: ResourceClaim
        metadata:
          name: c
        spec:
          devices:
            requests:
              - name: gpu
                deviceClassName: gpu.nvidia.com   # any GPU
                # two of them
                count: 2
        """,
        """
        apiVersion: resource.k8s.io/v1   # the old one
        kind: ResourceClaim
        metadata:
          name: c
        spec:
          devices:
            requests:
              - name: gpu
                exactly:
                  deviceClassName: gpu.nvidia.com   # any GPU
                  # two of them
                  count: 2
        """,
    ),
    changed(
        "v1beta1 request in braces",
        """
        apiVersion: resource.k8s.io/v1beta1
        kind: ResourceClaim
        metadata: {name: c}
        spec: {devices: {requests: [{name: gpu, deviceClassName: g}]}}
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        metadata: {name: c}
        spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: g}}]}}
        """,
    ),
    changed(
        "v1beta2 differs in its name only",
        """
        kind: DeviceClass
        apiVersion: "resource.k8s.io/v1beta2"
        metadata: {name: c}
        spec:
          selectors:
          - cel: {expression: 'device.driver == "d"'}
        """,
        """
        kind: DeviceClass
        apiVersion: "resource.k8s.io/v1"
        metadata: {name: c}
        spec:
          selectors:
          - cel: {expression: 'device.driver == "d"'}
        """,
    ),
    changed(
        "v1alpha3 slice",
        """
        apiVersion: resource.k8s.io/v1alpha3
        kind: ResourceSlice
        metadata:
          name: s
        spec:
          driver: d
          devices:
          - name: gpu-0
            basic:
              # eighty
              capacity:
                memory: 80Gi
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceSlice
        metadata:
          name: s
        spec:
          driver: d
          devices:
          - name: gpu-0
            # eighty
            capacity:
              memory:
                value: 80Gi
        """,
    ),
    changed(
        "v1alpha3 claim with a controller",
        """
        apiVersion: resource.k8s.io/v1alpha3
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          controller: x
          devices:
            requests:
            - name: r
              deviceClassName: d
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          devices:
            requests:
            - name: r
              exactly:
                deviceClassName: d
        """,
        "spec.controller: drivers with a controller",
    ),
    changed(
        "v1alpha3 class for some nodes",
        """
        apiVersion: resource.k8s.io/v1alpha3
        kind: DeviceClass
        metadata: {name: c}
        spec:
          suitableNodes: {nodeSelectorTerms: []}
          selectors: []
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata: {name: c}
        spec:
          selectors: []
        """,
        "spec.suitableNodes: classes no longer choose nodes",
    ),
    changed(
        "v1alpha3 taint rule becomes v1beta2",
        """
        apiVersion: resource.k8s.io/v1alpha3
        kind: DeviceTaintRule
        metadata: {name: r}
        spec: {deviceSelector: {driver: d}, taint: {key: k, effect: NoSchedule}}
        """,
        """
        apiVersion: resource.k8s.io/v1beta2
        kind: DeviceTaintRule
        metadata: {name: r}
        spec: {deviceSelector: {driver: d}, taint: {key: k, effect: NoSchedule}}
        """,
    ),
    kept(
        "v1alpha3 taint rule by class",
        """
        apiVersion: resource.k8s.io/v1alpha3
        kind: DeviceTaintRule
        metadata: {name: r}
        spec: {deviceSelector: {deviceClassName: c}, taint: {key: k, effect: NoSchedule}}
        """,
        "spec.deviceSelector.deviceClassName: rules no longer choose",
    ),
    kept(
        "what is alpha today stays",
        """
        apiVersion: resource.k8s.io/v1alpha3
        kind: ResourcePoolStatusRequest
        metadata: {name: r}
        spec: {driver: d}
        """,
    ),
    changed(
        "pods name claims one level higher",
        """
        apiVersion: v1
        kind: Pod
        metadata:
          name: p
        spec:
          resourceClaims:
          - name: a
            source:
              resourceClaimName: mine   # shared
          - name: b
            source: {resourceClaimTemplateName: each}
          containers: []
        """,
        """
        apiVersion: v1
        kind: Pod
        metadata:
          name: p
        spec:
          resourceClaims:
          - name: a
            resourceClaimName: mine   # shared
          - name: b
            resourceClaimTemplateName: each
          containers: []
        """,
    ),
    changed(
        "negotiation is removed",
        """
        apiVersion: v1
        kind: Namespace
        metadata: {name: n}
        ---
        # of the pod
        apiVersion: resource.k8s.io/v1alpha2
        kind: PodSchedulingContext
        metadata: {name: p}
        """,
        """
        apiVersion: v1
        kind: Namespace
        metadata: {name: n}
        ---
        # of the pod
        """,
        noted=["removed: the scheduler and drivers"],
    ),
]

ALPHA2 = [
    changed(
        "class of a driver",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClass
        metadata:
          name: fast   # by name
        driverName: gpu.resource.nvidia.com
        structuredParameters: true
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata:
          name: fast   # by name
        spec:
          selectors:
          - cel:
              expression: device.driver == "gpu.nvidia.com"
        """,
    ),
    changed(
        "class with parameters",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClass
        metadata: {name: fast}
        driverName: gpu.nvidia.com
        suitableNodes: {nodeSelectorTerms: []}
        parametersRef: {apiGroup: resource.k8s.io, kind: ResourceClassParameters, name: p, namespace: n}
        ---
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClassParameters
        metadata: {name: p, namespace: n}
        filters:
        - driverName: gpu.nvidia.com
          namedResources:
            selector: attributes.string["product-name"].startsWith("NVIDIA")
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata: {name: fast}
        spec:
          selectors:
          - cel:
              expression: device.driver == "gpu.nvidia.com"
          - cel:
              expression: device.attributes["gpu.nvidia.com"].productName.startsWith("NVIDIA")
        """,
        "suitableNodes: classes no longer choose nodes",
        noted=["removed: what it says is now in ResourceClass fast"],
    ),
    changed(
        "NVIDIA's class for partitions",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClass
        metadata: {name: parts}
        driverName: gpu.resource.nvidia.com
        parametersRef: {apiGroup: gpu.resource.nvidia.com, kind: DeviceClassParameters, name: p}
        ---
        apiVersion: gpu.resource.nvidia.com/v1alpha1
        kind: DeviceClassParameters
        metadata: {name: p}
        spec:
          deviceSelector:
          - type: mig
            name: "*"
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: DeviceClass
        metadata: {name: parts}
        spec:
          selectors:
          - cel:
              expression: device.driver == "gpu.nvidia.com"
          - cel:
              expression: device.attributes["gpu.nvidia.com"].type == "mig"
        """,
        noted=["removed: what it says is now in ResourceClass parts"],
    ),
    kept(
        "class without a driver",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClass
        metadata: {name: c}
        """,
        "driverName: does not name a driver",
    ),
    changed(
        "claim without parameters",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          # one will do
          resourceClassName: example.com
          allocationMode: Immediate
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          # one will do
          devices:
            requests:
            - name: device
              exactly:
                deviceClassName: example.com
        """,
        "spec.allocationMode: claims are allocated when",
    ),
    changed(
        "NVIDIA's GPUs with selector and sharing",
        """
        apiVersion: gpu.resource.nvidia.com/v1alpha1
        kind: GpuClaimParameters
        metadata: {name: p}
        spec:
          count: 2
          selector:
            andExpression:
            - productName: "*a100*"
            - memory: {value: 40Gi, operator: GreaterThanOrEqualTo}
            - orExpression:
              - cudaComputeCapability: {value: "8.0", operator: Equals}
              - architecture: Hopper
          sharing:
            strategy: TimeSlicing
            timeSlicingConfig: {timeSlice: Long}
        ---
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaimTemplate
        metadata:
          name: t
        spec:
          spec:
            resourceClassName: gpu.nvidia.com
            parametersRef:
              apiGroup: gpu.resource.nvidia.com
              kind: GpuClaimParameters
              name: p
        """,
        """
        ---
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaimTemplate
        metadata:
          name: t
        spec:
          spec:
            devices:
              requests:
              - name: gpu
                exactly:
                  deviceClassName: gpu.nvidia.com
                  selectors:
                  - cel:
                      expression: ONE_OF_TWO
                  allocationMode: ExactCount
                  count: 2
              config:
              - requests:
                - gpu
                opaque:
                  driver: gpu.nvidia.com
                  parameters:
                    apiVersion: resource.nvidia.com/v1beta1
                    kind: GpuConfig
                    sharing:
                      strategy: TimeSlicing
                      timeSlicingConfig:
                        interval: Long
        """.replace("ONE_OF_TWO", ONE_OF_TWO),
        noted=["removed: what it says is now in ResourceClaimTemplate t"],
    ),
    changed(
        "NVIDIA's partition of a GPU of another claim",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          resourceClassName: mine
          parametersRef: {apiGroup: gpu.resource.nvidia.com, kind: MigDeviceClaimParameters, name: p}
        ---
        apiVersion: gpu.resource.nvidia.com/v1alpha1
        kind: MigDeviceClaimParameters
        metadata: {name: p}
        spec:
          profile: 1g.5gb
          gpuClaimName: other
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          devices:
            requests:
            - name: mig
              exactly:
                deviceClassName: mine
                selectors:
                - cel:
                    expression: device.attributes["gpu.nvidia.com"].type == "mig"
                - cel:
                    expression: device.attributes["gpu.nvidia.com"].profile == "1g.5gb"
        """,
        "spec.parametersRef: MigDeviceClaimParameters: spec.gpuClaimName: a claim cannot name another",
        noted=["removed: what it says is now in ResourceClaim c"],
    ),
    kept(
        "compute instances, which are no more",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          resourceClassName: gpu.nvidia.com
          parametersRef: {apiGroup: gpu.resource.nvidia.com, kind: ComputeInstanceParameters, name: p}
        ---
        apiVersion: gpu.resource.nvidia.com/v1alpha1
        kind: ComputeInstanceParameters
        metadata: {name: p}
        spec: {profile: 1c.3g.20gb}
        """,
        "spec.parametersRef: ComputeInstanceParameters: spec: the driver no longer hands out",
        "left as it is, as ResourceClaim c is",
    ),
    kept(
        "parameters in no file that was given",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          resourceClassName: gpu.nvidia.com
          parametersRef: {apiGroup: gpu.resource.nvidia.com, kind: GpuClaimParameters, name: p}
        """,
        "spec.parametersRef: GpuClaimParameters p is not in the input",
    ),
    kept(
        "parameters of a driver that is not known",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          resourceClassName: x
          parameters: {apiVersion: x.example.com/v1, kind: XParameters}
        """,
        "spec.parameters: the parameters XParameters of x.example.com are unknown",
    ),
    changed(
        "Kubernetes' own parameters, made from a driver's",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaimParameters
        metadata: {name: generated}
        generatedFrom: {apiGroup: x.example.com, kind: XParameters, name: p}
        driverRequests:
        - driverName: x.example.com
          requests:
          - namedResources: {selector: 'attributes.quantity["memory"].isGreaterThan(quantity("1Gi"))'}
          - namedResources: {selector: "true"}
        ---
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          resourceClassName: x
          parametersRef: {apiGroup: x.example.com, kind: XParameters, name: p}
        """,
        """
        ---
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          devices:
            requests:
            - name: device-0
              exactly:
                deviceClassName: x
                selectors:
                - cel:
                    expression: device.capacity["x.example.com"].memory.isGreaterThan(quantity("1Gi"))
            - name: device-1
              exactly:
                deviceClassName: x
        """,
        noted=["removed: what it says is now in ResourceClaim c"],
    ),
    changed(
        "a claim's node selector without its pods",
        """
        apiVersion: resource.k8s.io/v1alpha2
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          resourceClassName: x
          constraints:
          - nodeSelector: {zone: a}
        """,
        """
        apiVersion: resource.k8s.io/v1
        kind: ResourceClaim
        metadata: {name: c}
        spec:
          devices:
            requests:
            - name: device
              exactly:
                deviceClassName: x
        """,
        "spec.constraints: claims do not choose nodes",
    ),
]
