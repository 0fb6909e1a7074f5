package config

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// readCellQueue reads the block of the cell's queue. The queue has the name of the pool,
// and its members are central managers: they replicate its log as the negotiators do
// theirs.
func (s *blockReader) readCellQueue(b *hclsyntax.Block, n *Node) {
	to := n.CellQueue
	q := s.innerBlock(b)
	q.readAddresses("listen", &to.Listen)
	q.readAddress("member", &to.Member)
	q.readAddresses("members", &to.Members)
	q.readDuration("job_lease", `"40m"`, &to.JobLease)
	q.readDuration("keep_history", `"90d"`, &to.KeepHistory)
	q.readCount("max_queued", &to.MaxQueued)
	q.readCount("max_queued_of_user", &to.MaxOfUser)
	for _, b := range q.nestedBlocks("trust") {
		q.readTrust(b, &to.Trust)
	}
	q.reportUnknown()
	switch {
	case n.Negotiator == nil:
		s.addProblem(b.TypeRange, "put the block into the node files of the central managers, beside negotiator",
			"a node without a negotiator has no member of the cell's queue")
	case n.Pool == "":
		s.addProblem(b.TypeRange, `name the pool in the files of all its nodes, as in: pool = "physics"`,
			"the queue of a cell has the name of its pool, and the pool has none")
	case n.Pool == n.Name:
		s.addProblem(b.TypeRange, "give the pool another name than this node",
			"the queue of the cell has the name of the pool, and the node's own queue has it too")
	case len(to.Members) > 1 && (to.Member == "" || !slices.Contains(to.Members, to.Member)):
		s.addProblem(b.TypeRange, "set member to that address of members which is this node's",
			"members has no address of this node's member")
	}
}

func (n *Node) fillCellQueueDefaults() {
	q := n.CellQueue
	if q == nil {
		return
	}
	fillListenAddress(&q.Listen, n.RunDir(), "cell-queue")
	setDefault(&q.Member, "unix:"+filepath.Join(n.RunDir(), "cell-queue-member.sock"))
	if len(q.Members) == 0 {
		q.Members = []string{q.Member}
	}
	setDefaultDuration(&q.JobLease, defaultJobLease)
	if q.MaxQueued == 0 {
		q.MaxQueued = defaultMaxQueued
	}
	if q.MaxOfUser == 0 {
		q.MaxOfUser = max(q.MaxQueued/2, 1)
	}
}

// CellQueueName returns the name that the queue of the cell has, if there is one: that of
// the pool. It is "" in a pool without a name of its own.
func (n *Node) CellQueueName() string {
	if n.Pool == n.Name {
		return ""
	}
	return n.Pool
}

// serviceLease is the lease of a service in the queue of the cell, whose next leader is
// there within seconds. A longer one would only keep a replacement away from a task that
// was lost with its machine.
const serviceLease = time.Minute

// CellQueueDir returns the directory of this node's member of the cell's queue.
func (n *Node) CellQueueDir() string { return filepath.Join(n.Dir, "cell-queue") }

// CellQueueNode returns the node file as the schedd of the cell's queue reads it. That
// schedd has the name of the pool, and a directory and addresses of its own.
func (n *Node) CellQueueNode() *Node {
	q, c := n.CellQueue, *n
	c.Name, c.Dir = n.Pool, n.CellQueueDir()
	c.Web, c.Startds, c.Collector, c.Negotiator = nil, nil, nil, nil
	c.Schedd = &ScheddSettings{
		Socket: "unix:" + filepath.Join(n.RunDir(), "cell-queue-schedd.sock"), SocketMode: 0o600,
		Listen: q.Listen, JobLease: q.JobLease, ServiceLease: serviceLease, KeepHistory: q.KeepHistory,
		MaxQueued: q.MaxQueued, MaxOfUser: q.MaxOfUser,
	}
	if n.Schedd != nil {
		c.Schedd.AllowRoot, c.Schedd.Notify = n.Schedd.AllowRoot, n.Schedd.Notify
	}
	return &c
}

func (w fileWriter) writeCellQueue(q *CellQueueSettings) {
	if q == nil {
		return
	}
	b := w.writeBlock("cell_queue")
	b.writeList("listen", q.Listen)
	b.writeText("member", q.Member)
	b.writeList("members", q.Members)
	b.writeDuration("job_lease", q.JobLease)
	b.writeDuration("keep_history", q.KeepHistory)
	if q.MaxQueued != 0 {
		b.writeNumber("max_queued", q.MaxQueued)
	}
	if q.MaxOfUser != 0 {
		b.writeNumber("max_queued_of_user", q.MaxOfUser)
	}
	for _, t := range q.Trust {
		b.writeBlock("trust", t.Node).writeList("users", t.Users)
	}
}
