"""Controllers that bring replicas home: WorkloadRebalancer, handover, failback."""
