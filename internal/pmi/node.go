package pmi

import "strconv"

// NodeSpec is the place of a task in its gang.
type NodeSpec struct {
	KVSName   string
	FirstRank int
	Ranks     int // of this node
	Size      int // ranks of the gang
	Nodes     int // tasks of the gang
}

// The bounds on what a node holds of its ranks' keys, in bytes. Beyond them a put fails.
const (
	maxRankKeys = 256 << 10 // of one rank between two barriers
	// MaxGangKeys bounds the keys of a whole gang.
	MaxGangKeys = 64 << 20
)

// Reply is what a rank is to be sent. The socket is closed after the bytes if Close is
// set.
type Reply struct {
	Rank  int // of this node, from 0
	Data  string
	Close bool
}

// Node is the server of the ranks of one task. Ranks are numbered from 0 within the node,
// but in messages and texts they have their numbers in the gang.
type Node struct {
	spec    NodeSpec
	ranks   []rankState
	written []int  // bytes put by each rank since the last barrier
	keys    KeySet // put since the last barrier
	last    KeySet // of the last barrier
	epoch   uint32 // barriers that are over
	waiting int    // ranks in the next one
	left    int    // ranks that have not exited
	entered bool   // the collector was told that all are
	over    bool   // the gang has ended
	sets    []KeySet
	size    int               // bytes of sets
	indexed int               // how many of sets are in found
	found   map[string]string // nil until a rank asks
	failure *Message          // how a rank of this node has ended the gang
	// own is what the ranks here have put, for those that get it before a barrier.
	own      map[string]string
	replies  []Reply
	messages []Message

	// attributes is what the ranks here tell each other by PMI-2.
	attributes     map[string]string
	attributeBytes int
	attributeWaits []attributeWait
}

// NewNode returns the server of a task's ranks.
func NewNode(spec NodeSpec) *Node {
	return &Node{spec: spec, ranks: make([]rankState, spec.Ranks), written: make([]int, spec.Ranks),
		own: map[string]string{}, left: spec.Ranks}
}

// TakeReplies returns what is to be sent to ranks, in this order, and forgets it.
func (n *Node) TakeReplies() []Reply {
	list := n.replies
	n.replies = nil
	return list
}

// TakeMessages returns what is to be sent to the collector, and forgets it.
func (n *Node) TakeMessages() []Message {
	list := n.messages
	n.messages = nil
	return list
}

// IsOver reports whether the gang has ended, for whatever reason.
func (n *Node) IsOver() bool { return n.over }

// ApplyInput takes in bytes that a rank has sent.
func (n *Node) ApplyInput(rank int, data []byte) {
	r := &n.ranks[rank]
	for len(data) > 0 && !r.closed && !n.over {
		part := data[:min(len(data), maxLine)]
		r.input, data = append(r.input, part...), data[len(part):]
		for !r.closed && !n.over {
			text, ok, bad := r.take()
			if bad != "" {
				n.failProtocol(rank, bad)
				return
			}
			if !ok {
				break
			}
			if r.isPMI2 {
				n.applyFrame(rank, text)
			} else {
				n.applyLine(rank, text)
			}
		}
	}
	if r.closed || n.over {
		r.input = nil
	}
}

// ApplyClosed takes in that a rank has closed its socket. Its exit says what that means.
func (n *Node) ApplyClosed(rank int) {
	r := &n.ranks[rank]
	r.closed, r.input = true, nil
}

// ApplyUnread takes in that a rank does not read what it is sent.
func (n *Node) ApplyUnread(rank int) {
	if !n.ranks[rank].closed {
		n.failProtocol(rank, "it does not read the answers")
	}
}

// ApplyExit takes in that a rank's process has ended. text says how if it has not ended
// well.
func (n *Node) ApplyExit(rank int, code int32, text string) {
	r := &n.ranks[rank]
	if r.phase == Exited {
		return
	}
	before := r.phase
	r.phase, r.closed, r.input = Exited, true, nil
	n.left--
	switch {
	case n.over:
	case code != 0 || text != "":
		n.fail(rank, max(code, 1), text)
	case before != Launched && before != Finalised:
		n.fail(rank, 1, "has ended without MPI_Finalize")
	case !r.spoke && n.someoneSpoke():
		n.fail(rank, 1, endedSilently)
	case n.waiting > 0:
		n.fail(rank, 1, endedBefore)
	case n.left == 0:
		n.messages = append(n.messages, n.endedMessage())
	}
}

// Why a gang ends though no rank of it has failed.
const (
	endedSilently = "has ended without MPI_Init, and others of the program have called it"
	endedBefore   = "is in a barrier that cannot end, or has left others in one: a rank has ended before"
)

// endedSilently returns a rank that has ended without a word; -1 for none.
func (n *Node) endedSilently() int {
	for i := range n.ranks {
		if n.ranks[i].phase == Exited && !n.ranks[i].spoke {
			return i
		}
	}
	return -1
}

// someoneSpoke reports whether a rank of this node has called init.
func (n *Node) someoneSpoke() bool {
	for i := range n.ranks {
		if n.ranks[i].spoke {
			return true
		}
	}
	return false
}

// endedMessage says that all ranks have ended well. Its code is 1 if none of them has
// ever spoken.
func (n *Node) endedMessage() Message {
	m := Message{Kind: Ended}
	if !n.someoneSpoke() {
		m.Code = 1
	}
	return m
}

// fail ends the gang for what a rank has done.
func (n *Node) fail(rank int, code int32, text string) {
	if n.over {
		return
	}
	n.over = true
	n.failure = &Message{Kind: Failed, Rank: uint32(n.spec.FirstRank + rank), Code: code,
		Text: text}
	n.messages = append(n.messages, *n.failure)
}

// Failure returns how a rank of this node has ended the gang; nil if none has.
func (n *Node) Failure() *Message { return n.failure }

// failProtocol closes the socket of a rank that breaks the protocol, and ends the gang.
func (n *Node) failProtocol(rank int, text string) {
	r := &n.ranks[rank]
	r.closed, r.input = true, nil
	n.replies = append(n.replies, Reply{Rank: rank, Close: true})
	protocol := "PMI-1"
	if r.isPMI2 {
		protocol = "PMI-2"
	}
	n.fail(rank, 1, "does not speak "+protocol+": "+text)
}

// ApplyMessage takes in a message of the collector.
func (n *Node) ApplyMessage(m Message) {
	switch {
	case n.over:
	case m.Kind == Finish || m.Kind == Stop:
		n.over = true
	case m.Kind == Release && m.Epoch == n.epoch+1 && n.entered:
		n.leaveBarrier(m.Data)
	}
}

// leaveBarrier lets the ranks go on, with the keys of all.
func (n *Node) leaveBarrier(set KeySet) {
	if len(set) > 0 {
		if n.size += len(set); n.size > MaxGangKeys {
			n.fail(0, 1, "and others have put more than "+strconv.Itoa(MaxGangKeys>>20)+" MiB of keys")
			return
		}
		n.sets = append(n.sets, set)
	}
	n.epoch, n.last, n.keys, n.waiting, n.entered = n.epoch+1, n.keys, nil, 0, false
	clear(n.written)
	for i := range n.ranks {
		r := &n.ranks[i]
		if !r.waits {
			continue
		}
		if r.waits = false; r.phase == InBarrier {
			r.phase = Running
		}
		if !r.closed {
			out := "cmd=barrier_out rc=0\n"
			if r.isPMI2 {
				out = answerFrame("kvs-fence", r.fenceThread, "rc", "0")
			}
			n.replies = append(n.replies, Reply{Rank: i, Data: out})
		}
	}
}

// ApplyConnected takes in that there is a new connection to the collector, which may know
// nothing of this node.
func (n *Node) ApplyConnected() {
	n.messages = append(n.messages[:0:0], n.ProgressMessage())
	if n.epoch > 0 {
		n.messages = append(n.messages, Message{Kind: Barrier, Epoch: n.epoch, Data: n.last})
	}
	if n.entered {
		n.messages = append(n.messages, Message{Kind: Barrier, Epoch: n.epoch + 1, Data: n.keys})
	}
	switch {
	case n.failure != nil:
		n.messages = append(n.messages, *n.failure)
	case n.left == 0:
		n.messages = append(n.messages, n.endedMessage())
	}
}

// ProgressMessage says how far each rank of this node is.
func (n *Node) ProgressMessage() Message {
	phases := make([]byte, len(n.ranks))
	for i := range n.ranks {
		phases[i] = byte(n.ranks[i].phase)
	}
	return Message{Kind: Progress, Data: phases}
}

// ProcessMapping is the value of the key PMI_process_mapping: which ranks share a node.
// Each task counts as a node of its own, because tasks of one machine share no memory.
func (s NodeSpec) ProcessMapping() string {
	if s.Ranks*s.Nodes != s.Size {
		return ""
	}
	return "(vector,(0," + strconv.Itoa(s.Nodes) + "," + strconv.Itoa(s.Ranks) + "))"
}
