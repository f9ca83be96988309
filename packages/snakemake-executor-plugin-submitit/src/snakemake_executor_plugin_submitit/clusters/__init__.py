"""Clusters, which run array tasks: Slurm, this machine, and those of installed packages."""

from importlib.metadata import entry_points

from snakemake_executor_plugin_submitit.clusters.cluster import Cluster
from snakemake_executor_plugin_submitit.clusters.local import Local
from snakemake_executor_plugin_submitit.clusters.slurm import Slurm

# The group of entry points by which a package adds clusters: the name of each, and its class.
GROUP = "snakemake_executor_plugin_submitit.clusters"
CLUSTERS: dict[str, type[Cluster]] = {
    **{cluster.name: cluster for cluster in (Slurm, Local)},
    **{entry.name: entry.load() for entry in entry_points(group=GROUP)},
}
# The resources that some cluster has for itself.
RESOURCES = {name for cluster in CLUSTERS.values() for name in cluster.resources}
