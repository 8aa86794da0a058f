"""
kmemshim for programs and notebooks.

    import kmemshim
    kmemshim.step()                 a step begins: a batch, a request (program.py)
    kmemshim.mark("epoch 3")        a moment with a name
    kmemshim.snapshot("epoch 3")    the same, with what each line holds then
    kmemshim.phase()                what is live, what it was at most since the last call; a new phase begins
    kmemshim.usage()                the same, and the phase goes on
    kmemshim.holders()              what keeps the blocks of the largest lines alive (look.py)

In a program that is not recorded these do nothing.

For tests: pytest --kmemshim (pytest_plugin.py).

The notebook's side: why did the kernel die, and what holds the memory now?

A kernel that `kmemshim jupyter install` wrote loads this by --ext=kmemshim. It then
  - shows, once, above the output of the first cell, why the kernel before this one died (death.py),
  - writes the text of each cell down before the cell runs (cells.py),
  - says below a cell that the guard stopped it (guard.py),
  - has %kmem and %%kmem (magics.py).
All figures come from the recorder's capture, read by the kmemshim command (recording.py).

When failing  the cell runs all the same. A failure of ours is one line on stderr, once.
"""
import os
import sys

__version__ = "0.9.0"
_OF_PROGRAMS = ("mark", "phase", "snapshot", "step", "usage")


def __getattr__(name):
    """What programs say is looked up when it is used: pytest imports this package whether or not it is wanted."""
    if name == "holders":
        from .look import holders
        globals()[name] = holders
        return holders
    if name not in _OF_PROGRAMS:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    from . import program
    globals().update((each, getattr(program, each)) for each in _OF_PROGRAMS)
    return globals()[name]


_hooks = None


class Hooks:
    """What happens before each cell of this kernel."""

    def __init__(self, shell, guard, *steps):
        self.shell = shell
        self.guard = guard
        self.steps = [step for step in (guard, *steps) if step is not None]

    def post_run_cell(self, result):
        try:
            self.guard.after_cell(self.shell, result)
        except Exception as error:
            print("kmemshim: what the guard did is not known: %s" % error, file=sys.stderr)

    def pre_run_cell(self, info):
        for step in list(self.steps):
            try:
                if not step.before_cell(self.shell, info):
                    self.steps.remove(step)
            except Exception as error:
                self.steps.remove(step)
                print("kmemshim: %s; cells run as before" % step.failed(error), file=sys.stderr)


def _forget_path():
    """Programs that the notebook starts are not to find our folder among their modules."""
    own = os.path.realpath(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    others = [path for path in paths if os.path.realpath(path) != own]
    if len(others) == len(paths):
        return
    if others:
        os.environ["PYTHONPATH"] = os.pathsep.join(others)
    else:
        del os.environ["PYTHONPATH"]


def load_ipython_extension(shell):
    global _hooks
    from . import cells, death, growth, guard, magics

    life = os.environ.get("KMEMSHIM_KERNEL")
    previous = os.environ.pop("KMEMSHIM_PREVIOUS", None)
    if life:
        _forget_path()
    grown = growth.Growth()
    magic = magics.KmemMagics(shell, grown)
    shell.register_magics(magic)
    _hooks = Hooks(shell, guard.Guard(), cells.open_file(life), grown, magic, death.Death(previous) if previous else None)
    shell.events.register("pre_run_cell", _hooks.pre_run_cell)
    shell.events.register("post_run_cell", _hooks.post_run_cell)


def unload_ipython_extension(shell):
    global _hooks
    if _hooks is not None:
        shell.events.unregister("pre_run_cell", _hooks.pre_run_cell)
        shell.events.unregister("post_run_cell", _hooks.post_run_cell)
        _hooks = None
