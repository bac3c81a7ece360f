"""Intel's GPUs (`gpu.intel.com`) and Gaudi accelerators (`gaudi.intel.com`)."""
