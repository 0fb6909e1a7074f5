package pool

import "github.com/roost-batch/roost/internal/sim/consensus"

// replicaRunner runs the replica of a log on a node: it writes its disk, and sends what
// may leave then.
type replicaRunner struct {
	node  *hostNode
	peer  func(i int) *hostNode // the node of a replica
	files consensus.ReplicaDisk

	replica      *consensus.Replica
	writing      *consensus.ReplicaDisk
	writeFails   bool
	heldMessages []consensus.Message // messages that wait for the present write
	elections    daemonTimer
}

// startReplica starts the replica from what is on its disk.
func (r *replicaRunner) startReplica(index, peers int) {
	r.replica = consensus.New(index, peers, r.files, r.node.pool.loop.Now(), r.node.pool.rand)
	r.elections = daemonTimer{}
}

// stopReplica ends the replica with its daemon.
func (r *replicaRunner) stopReplica() {
	if r.writing != nil && r.node.tornWrite && !r.writeFails {
		r.files = *r.writing
	}
	r.node.tornWrite, r.writing, r.heldMessages, r.replica = false, nil, nil, nil
}

// flushLog begins a write if one is pending, and sends the messages that wait for none.
func (r *replicaRunner) flushLog() {
	if r.writing != nil {
		return
	}
	disk := r.replica.TakeWrite()
	r.heldMessages = r.replica.TakeMessages(r.heldMessages)
	if disk == nil {
		r.sendHeld()
		return
	}
	takes, ok := r.node.writeTime()
	r.writing, r.writeFails = disk, !ok
	r.node.scheduleEvent(r.node.pool.loop.Now()+takes, evDisk, 0, nil)
}

func (r *replicaRunner) sendHeld() {
	for _, x := range r.heldMessages {
		r.node.pool.network().sendDatagram(r.node, r.peer(x.To), x)
	}
	r.heldMessages = r.heldMessages[:0]
}

// replicaWritten handles the end of a write. It returns false if the write has failed,
// which ends the daemon.
func (r *replicaRunner) replicaWritten() bool {
	if r.writeFails {
		r.node.killAndRestart()
		return false
	}
	r.files = *r.writing
	r.writing = nil
	r.sendHeld()
	r.replica.WriteDone(&r.files)
	return true
}

func (r *replicaRunner) handleDatagram(x any) {
	r.replica.HandleMessage(r.node.pool.loop.Now(), x.(consensus.Message))
}
