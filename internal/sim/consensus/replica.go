package consensus

import (
	"slices"
	"time"
)

// Times of internal/replica: a follower waits so long and up to as much again; a leader
// speaks several times in that.
const (
	ElectionTimeout   = 250 * time.Millisecond
	HeartbeatInterval = 50 * time.Millisecond
)

// maxEntriesPerMessage bounds the entries of a message.
const maxEntriesPerMessage = 256

// LogEntry is one of the log. An empty one is a leader's first.
type LogEntry struct {
	Term uint64
	Text []byte
	Sum  uint32 // checksum of the others
}

// ReplicaDisk is what a replica must not forget. It is replaced as a whole, never written
// into.
type ReplicaDisk struct {
	Term      uint64
	Vote      int // replica, or -1
	Log       []LogEntry
	IsLearner bool // its log was damaged: it has no vote until it has all that the others have
}

// MessageType is a kind of message.
type MessageType uint8

// The kinds of figure 2.
const (
	VoteRequest MessageType = iota
	VoteReply
	AppendRequest
	AppendReply
)

// Message is from one replica to another. It may be lost, or come late or twice.
type Message struct {
	Type     MessageType
	From, To int
	Term     uint64
	// VoteRequest: of the last entry; Append: of the one before Entries; Appended: of the
	// last that is the same
	Index        uint64
	PreviousTerm uint64 // VoteRequest, AppendRequest: the term of that entry
	Entries      []LogEntry
	Commit       uint64
	LastIndex    uint64 // Append: the leader's last entry
	Accepted     bool
	IsLearner    bool          // Appended: whoever sends it has lost its log
	SentAt       time.Duration // Append: when; Appended: when the AppendRequest was that it answers
}

// replicaRole is what a replica is.
type replicaRole uint8

const (
	follower replicaRole = iota
	candidate
	leader
)

// ElectionRand draws how long a follower waits.
type ElectionRand interface {
	Between(a, b time.Duration) time.Duration
}

// Replica is one of several. Term, vote and log are as they will be on disk.
type Replica struct {
	id, peers int
	rand      ElectionRand
	disk      ReplicaDisk
	dirty     bool
	started   time.Duration

	role          replicaRole
	leader        int // whom it follows; -1: nobody
	commit        uint64
	applied       uint64
	nextTick      time.Duration // of the election, or of the leader's next word
	votes         []bool
	next          []uint64 // by peer
	match         []uint64
	lastHeard     []time.Duration // by peer: when the AppendRequest was sent that it answered last
	firstOwnEntry uint64          // the leader's first entry: when it is applied all before are
	syncedIndex   uint64          // its own entries up to this one are on disk
	outgoing      []Message
}

// New returns a replica that has read its disk. The number of peers counts itself. One
// that finds its log damaged drops it, and learns it from the others; what is left of it
// must not vote, since an entry that is missing may have been committed with its help.
// Where it is alone it never leads again.
func New(id, peers int, disk ReplicaDisk, now time.Duration, rand ElectionRand) *Replica {
	r := &Replica{id: id, peers: peers, rand: rand, disk: disk, leader: -1, started: now}
	if disk.isDamaged() {
		r.disk.Log, r.disk.IsLearner, r.dirty = nil, true, true
	}
	r.syncedIndex = r.lastIndex()
	if disk.Term == 0 {
		r.disk.Vote = -1
	}
	r.resetElectionTimer(now)
	return r
}

func (r *Replica) resetElectionTimer(now time.Duration) {
	if r.peers == 1 {
		r.nextTick = now // nobody else asks for votes
		return
	}
	r.nextTick = now + r.rand.Between(ElectionTimeout, 2*ElectionTimeout)
}

func (r *Replica) lastIndex() uint64 { return uint64(len(r.disk.Log)) }

// termAt is the term of an entry.
func (r *Replica) termAt(index uint64) uint64 {
	if index == 0 || index > r.lastIndex() {
		return 0
	}
	return r.disk.Log[index-1].Term
}

// LeaderState says whether the replica leads, and has applied all entries of earlier
// leaders; in which term; and who does, as far as it knows, -1 for nobody.
func (r *Replica) LeaderState() (leads bool, term uint64, who int) {
	return r.role == leader && r.applied >= r.firstOwnEntry, r.disk.Term, r.leader
}

// Propose puts an entry at the end of a leader's log, and returns its index; ok is false
// for any other.
func (r *Replica) Propose(now time.Duration, text []byte) (index uint64, ok bool) {
	if r.role != leader {
		return 0, false
	}
	r.disk.Log = append(r.disk.Log[:r.lastIndex():r.lastIndex()], newEntry(r.disk.Term, text))
	r.dirty = true
	r.sendEntriesToAll(now)
	return r.lastIndex(), true
}

// ConfirmedSince reports whether a majority has answered something that this leader sent
// at that time or later.
func (r *Replica) ConfirmedSince(since time.Duration) bool {
	return r.role == leader && r.quorumTime() >= since
}

// quorumTime is the latest time such that a majority has answered what was sent then or
// later.
func (r *Replica) quorumTime() time.Duration {
	if r.peers == 1 {
		return 1<<63 - 1
	}
	all := slices.Clone(r.lastHeard)
	all[r.id] = 1<<63 - 1
	slices.Sort(all)
	return all[(r.peers-1)/2]
}

// TakeWrite returns what is to be on disk before messages leave that were made until now,
// nil when there is nothing new. Written is to be called then.
func (r *Replica) TakeWrite() *ReplicaDisk {
	if !r.dirty {
		return nil
	}
	r.dirty = false
	disk := r.disk
	return &disk
}

// WriteDone tells that a disk that TakeWrite returned is safe.
func (r *Replica) WriteDone(disk *ReplicaDisk) {
	if disk.Term != r.disk.Term {
		return // it holds nothing that counts for the present term
	}
	r.syncedIndex = max(r.syncedIndex, uint64(len(disk.Log)))
	if r.role == leader {
		r.advanceCommit()
	}
}

// TakeMessages drains what is to be sent, when all that was written before is safe, to
// the end of a list.
func (r *Replica) TakeMessages(list []Message) []Message {
	list = append(list, r.outgoing...)
	r.outgoing = r.outgoing[:0]
	return list
}

// NextCommitted returns the next entry that is to be applied; ok is false when there is
// none.
func (r *Replica) NextCommitted() (index uint64, e LogEntry, ok bool) {
	if r.applied >= r.commit {
		return 0, e, false
	}
	r.applied++
	return r.applied, r.disk.Log[r.applied-1], true
}

// NextTick is when Tick is due.
func (r *Replica) NextTick() (at time.Duration, ok bool) {
	return r.nextTick, !(r.peers == 1 && r.role == leader)
}
