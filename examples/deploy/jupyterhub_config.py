# JupyterHub: kernels of all users are recorded, the servers are not.
# Once, in the users' image or environment:  kmemshim jupyter install --sys-prefix
# The launcher preloads the library into the kernel alone. Do not put LD_PRELOAD into Spawner.environment: it would
# record each server, too.
c = get_config()  # noqa: F821 - JupyterHub defines it

# Where captures of kernels go, below the user's home or on a volume that outlives the server.
c.Spawner.environment = {"XDG_STATE_HOME": lambda spawner: f"/home/{spawner.user.name}/.local/state"}
# The kernel that is offered first.
c.Spawner.args = ["--MultiKernelManager.default_kernel_name=python3-kmemshim"]
# With KubeSpawner or DockerSpawner: the limit that the guard and the verdict look at.
c.Spawner.mem_limit = "12G"
