package consensus

import (
	"slices"
	"time"
)

// Times of internal/replica. A follower waits one to two election timeouts. A leader
// sends several heartbeats in that time.
const (
	ElectionTimeout   = 250 * time.Millisecond
	HeartbeatInterval = 50 * time.Millisecond
)

// maxEntriesPerMessage bounds the entries of a message.
const maxEntriesPerMessage = 256

// LogEntry is an entry of the log. The first entry of each leader is empty.
type LogEntry struct {
	Term uint64
	Text []byte
	Sum  uint32 // checksum of Term and Text
}

// ReplicaDisk is the persistent state of a replica. It is replaced as a whole and never
// modified.
type ReplicaDisk struct {
	Term      uint64
	Vote      int // id of a replica, or -1
	Log       []LogEntry
	IsLearner bool // the log was damaged: no vote until it is as long as the others'
}

// MessageType is the type of a message.
type MessageType uint8

// The types of figure 2.
const (
	VoteRequest MessageType = iota
	VoteReply
	AppendRequest
	AppendReply
)

// Message is a message from one replica to another. It may be lost, late or duplicated.
type Message struct {
	Type     MessageType
	From, To int
	Term     uint64
	// VoteRequest: index of the last entry; AppendRequest: of the entry before Entries;
	// AppendReply: of the last entry that is equal
	Index        uint64
	PreviousTerm uint64 // VoteRequest, AppendRequest: the term of the entry at Index
	Entries      []LogEntry
	Commit       uint64
	LastIndex    uint64 // AppendRequest: index of the leader's last entry
	Accepted     bool
	IsLearner    bool          // AppendReply: the sender has lost its log
	SentAt       time.Duration // AppendRequest: when it was sent; AppendReply: SentAt of the request
}

// replicaRole is the role of a replica.
type replicaRole uint8

const (
	follower replicaRole = iota
	candidate
	leader
)

// ElectionRand draws the election timeouts.
type ElectionRand interface {
	Between(a, b time.Duration) time.Duration
}

// Replica is one replica of the log. Its term, vote and log are those that TakeWrite
// returns next.
type Replica struct {
	id, peers int
	rand      ElectionRand
	disk      ReplicaDisk
	dirty     bool
	started   time.Duration

	role          replicaRole
	leader        int // the leader that it follows, -1 if unknown
	commit        uint64
	applied       uint64
	nextTick      time.Duration // time of the next election, or of the leader's next heartbeat
	votes         []bool
	next          []uint64 // by peer: index of the next entry to send
	match         []uint64
	lastHeard     []time.Duration // by peer: SentAt of the latest answered AppendRequest
	firstOwnEntry uint64          // the leader's first entry: once applied, all earlier ones are
	syncedIndex   uint64          // the replica's entries up to this one are on disk
	outgoing      []Message
}

// New returns a replica that has read its disk. peers counts the replica, too. A replica
// that finds its log damaged drops it and learns it from the others. It must not vote
// meanwhile, because a missing entry may have been committed with its help. A group of
// one never leads again after damage.
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
		r.nextTick = now // no other replica asks for votes
		return
	}
	r.nextTick = now + r.rand.Between(ElectionTimeout, 2*ElectionTimeout)
}

func (r *Replica) lastIndex() uint64 { return uint64(len(r.disk.Log)) }

// termAt returns the term of an entry, 0 if there is none.
func (r *Replica) termAt(index uint64) uint64 {
	if index == 0 || index > r.lastIndex() {
		return 0
	}
	return r.disk.Log[index-1].Term
}

// LeaderState returns whether the replica leads, its term, and the leader's id. A replica
// leads when it has applied all entries of earlier leaders. The id is -1 if it knows
// none.
func (r *Replica) LeaderState() (leads bool, term uint64, who int) {
	return r.role == leader && r.applied >= r.firstOwnEntry, r.disk.Term, r.leader
}

// Propose appends an entry to a leader's log and returns its index. On another replica ok
// is false.
func (r *Replica) Propose(now time.Duration, text []byte) (index uint64, ok bool) {
	if r.role != leader {
		return 0, false
	}
	r.disk.Log = append(r.disk.Log[:r.lastIndex():r.lastIndex()], newEntry(r.disk.Term, text))
	r.dirty = true
	r.sendEntriesToAll(now)
	return r.lastIndex(), true
}

// Beat sends a leader's heartbeats at once, so that ConfirmedSince is soon true.
func (r *Replica) Beat(now time.Duration) {
	if r.role == leader {
		r.sendEntriesToAll(now)
	}
}

// ConfirmedSince reports whether a majority has answered messages that this leader sent
// at that time or later.
func (r *Replica) ConfirmedSince(since time.Duration) bool {
	return r.role == leader && r.quorumTime() >= since
}

// quorumTime returns the latest time for which a majority has answered messages sent then
// or later.
func (r *Replica) quorumTime() time.Duration {
	if r.peers == 1 {
		return 1<<63 - 1
	}
	all := slices.Clone(r.lastHeard)
	all[r.id] = 1<<63 - 1
	slices.Sort(all)
	return all[(r.peers-1)/2]
}

// TakeWrite returns the disk to write before the messages made until now are sent. It
// returns nil if nothing is new. The caller calls WriteDone when the write is safe.
func (r *Replica) TakeWrite() *ReplicaDisk {
	if !r.dirty {
		return nil
	}
	r.dirty = false
	disk := r.disk
	return &disk
}

// WriteDone reports that a disk that TakeWrite returned is safe.
func (r *Replica) WriteDone(disk *ReplicaDisk) {
	if disk.Term != r.disk.Term {
		return // nothing in it counts for the current term
	}
	r.syncedIndex = max(r.syncedIndex, uint64(len(disk.Log)))
	if r.role == leader {
		r.advanceCommit()
	}
}

// TakeMessages moves the outgoing messages to the end of a list. They may be sent when
// everything written before is safe.
func (r *Replica) TakeMessages(list []Message) []Message {
	list = append(list, r.outgoing...)
	r.outgoing = r.outgoing[:0]
	return list
}

// NextCommitted returns the next entry to apply; ok is false if there is none.
func (r *Replica) NextCommitted() (index uint64, e LogEntry, ok bool) {
	if r.applied >= r.commit {
		return 0, e, false
	}
	r.applied++
	return r.applied, r.disk.Log[r.applied-1], true
}

// NextTick returns when Tick is due; ok is false if it never is.
func (r *Replica) NextTick() (at time.Duration, ok bool) {
	return r.nextTick, !(r.peers == 1 && r.role == leader)
}
