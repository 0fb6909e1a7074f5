package consensus

import (
	"slices"
	"time"
)

// Times of internal/replica: a follower waits so long and up to as much again; a leader speaks several times in that.
const (
	Election  = 250 * time.Millisecond
	Heartbeat = 50 * time.Millisecond
)

// mostAtOnce bounds the entries of a message.
const mostAtOnce = 256

// Entry is one of the log. An empty one is a leader's first.
type Entry struct {
	Term uint64
	Text []byte
	Sum  uint32 // checksum of the others
}

// Disk is what a replica must not forget. It is replaced as a whole, never written into.
type Disk struct {
	Term   uint64
	Vote   int // replica, or -1
	Log    []Entry
	Learns bool // its log was damaged: it has no vote until it has all that the others have
}

// Kind is a kind of message.
type Kind uint8

// The kinds of figure 2.
const (
	AskVote Kind = iota
	GiveVote
	Append
	Appended
)

// Message is from one replica to another. It may be lost, or come late or twice.
type Message struct {
	Kind     Kind
	From, To int
	Term     uint64
	Index    uint64 // AskVote: of the last entry; Append: of the one before Entries; Appended: of the last that is the same
	At       uint64 // AskVote, Append: the term of that entry
	Entries  []Entry
	Commit   uint64
	Last     uint64 // Append: the leader's last entry
	Yes      bool
	Learns   bool          // Appended: whoever sends it has lost its log
	Sent     time.Duration // Append: when; Appended: when the Append was that it answers
}

// role is what a replica is.
type role uint8

const (
	follower role = iota
	candidate
	leader
)

// Rand draws how long a follower waits.
type Rand interface {
	Between(a, b time.Duration) time.Duration
}

// Replica is one of several. Term, vote and log are as they will be on disk.
type Replica struct {
	id, peers int
	rand      Rand
	disk      Disk
	dirty     bool
	started   time.Duration

	role    role
	leader  int // whom it follows; -1: nobody
	commit  uint64
	applied uint64
	due     time.Duration // of the election, or of the leader's next word
	votes   []bool
	next    []uint64 // by peer
	match   []uint64
	heard   []time.Duration // by peer: when the Append was sent that it answered last
	first   uint64          // the leader's first entry: when it is applied all before are
	synced  uint64          // its own entries up to this one are on disk
	out     []Message
}

// New returns a replica that has read its disk. The number of peers counts itself. One that finds its log damaged drops it, and learns it from the others; what is
// left of it must not vote, since an entry that is missing may have been committed with its help. Where it is alone it never leads again.
func New(id, peers int, disk Disk, now time.Duration, rand Rand) *Replica {
	r := &Replica{id: id, peers: peers, rand: rand, disk: disk, leader: -1, started: now}
	if disk.damaged() {
		r.disk.Log, r.disk.Learns, r.dirty = nil, true, true
	}
	r.synced = r.last()
	if disk.Term == 0 {
		r.disk.Vote = -1
	}
	r.wait(now)
	return r
}

func (r *Replica) wait(now time.Duration) {
	if r.peers == 1 {
		r.due = now // nobody else asks for votes
		return
	}
	r.due = now + r.rand.Between(Election, 2*Election)
}

func (r *Replica) last() uint64 { return uint64(len(r.disk.Log)) }

// at is the term of an entry.
func (r *Replica) at(index uint64) uint64 {
	if index == 0 || index > r.last() {
		return 0
	}
	return r.disk.Log[index-1].Term
}

// Leadership says whether the replica leads, and has applied all entries of earlier leaders; in which term; and who does, as far as it knows, -1 for nobody.
func (r *Replica) Leadership() (leads bool, term uint64, who int) {
	return r.role == leader && r.applied >= r.first, r.disk.Term, r.leader
}

// Propose puts an entry at the end of a leader's log, and returns its index; ok is false for any other.
func (r *Replica) Propose(now time.Duration, text []byte) (index uint64, ok bool) {
	if r.role != leader {
		return 0, false
	}
	r.disk.Log = append(r.disk.Log[:r.last():r.last()], newEntry(r.disk.Term, text))
	r.dirty = true
	r.tellAll(now)
	return r.last(), true
}

// Confirmed reports whether a majority has answered something that this leader sent at that time or later.
func (r *Replica) Confirmed(since time.Duration) bool {
	return r.role == leader && r.quorumTime() >= since
}

// quorumTime is the latest time such that a majority has answered what was sent then or later.
func (r *Replica) quorumTime() time.Duration {
	if r.peers == 1 {
		return 1<<63 - 1
	}
	all := slices.Clone(r.heard)
	all[r.id] = 1<<63 - 1
	slices.Sort(all)
	return all[(r.peers-1)/2]
}

// Write returns what is to be on disk before messages leave that were made until now, nil when there is nothing new. Written is to be called then.
func (r *Replica) Write() *Disk {
	if !r.dirty {
		return nil
	}
	r.dirty = false
	disk := r.disk
	return &disk
}

// Written tells that a disk that Write returned is safe.
func (r *Replica) Written(disk *Disk) {
	if disk.Term != r.disk.Term {
		return // it holds nothing that counts for the present term
	}
	r.synced = max(r.synced, uint64(len(disk.Log)))
	if r.role == leader {
		r.advance()
	}
}

// Messages drains what is to be sent, when all that was written before is safe, to the end of a list.
func (r *Replica) Messages(list []Message) []Message {
	list = append(list, r.out...)
	r.out = r.out[:0]
	return list
}

// Committed returns the next entry that is to be applied; ok is false when there is none.
func (r *Replica) Committed() (index uint64, e Entry, ok bool) {
	if r.applied >= r.commit {
		return 0, e, false
	}
	r.applied++
	return r.applied, r.disk.Log[r.applied-1], true
}

// Wake is when Tick is due.
func (r *Replica) Wake() (at time.Duration, ok bool) {
	return r.due, !(r.peers == 1 && r.role == leader)
}
