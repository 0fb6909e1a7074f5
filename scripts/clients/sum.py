# The program that "mpirun" starts in the run "mpi": every process sends its rank to all
# others, each adds them up, and the first prints on how many machines they run.
import os
from mpi4py import MPI

world = MPI.COMM_WORLD
left, right = (world.rank - 1) % world.size, (world.rank + 1) % world.size
assert world.sendrecv(world.rank, dest=right, source=left) == left
total = world.allreduce(world.rank)
nodes = world.gather(os.environ["ROOST_NODE"])
if world.rank == 0:
    print("sum", total, "of", world.size, "on", len(set(nodes)), flush=True)
