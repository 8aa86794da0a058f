"""Ray: workers are recorded where the runtime environment says so; Ray's own processes are not.

python3 ray_job.py /usr/local/lib/libkmemshim.so
After a death: kmemshim why kmemshim.ray
"""
import os
import sys

import ray


@ray.remote(max_retries=0)
def grow(mebibytes):
    kept = [bytearray(1 << 20) for _ in range(mebibytes)]
    os.kill(os.getpid(), 9)  # as the OOM killer, or Ray's memory monitor
    return len(kept)


if __name__ == "__main__":
    variables = {"LD_PRELOAD": os.path.abspath(sys.argv[1]), "KMEMSHIM_OUT": os.path.abspath("kmemshim.ray")}
    ray.init(num_cpus=1, include_dashboard=False, runtime_env={"env_vars": variables})
    try:
        ray.get(grow.remote(100))
    except ray.exceptions.WorkerCrashedError as error:
        print(type(error).__name__)
