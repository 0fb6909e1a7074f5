package pmi

import (
	"strconv"
	"strings"
)

// mappingKey is a key that is there from the start.
const mappingKey = "PMI_process_mapping"

// applyLine takes in one line of a rank and answers it.
func (n *Node) applyLine(rank int, line string) {
	r := &n.ranks[rank]
	if r.waits && !strings.HasPrefix(line, "cmd=abort") {
		n.failProtocol(rank, "a line while it waits in a barrier")
		return
	}
	if r.spawning {
		if line == "endcmd" {
			r.spawning = false
			n.reply(rank, "cmd=spawn_result rc=-1 msg=spawn_is_not_supported")
		}
		return
	}
	l, ok := parseLine(line)
	if !ok {
		n.failProtocol(rank, "the line "+quoted(line))
		return
	}
	if r.phase == Launched && l.command != "init" {
		n.failProtocol(rank, quoted(l.command)+" comes before init")
		return
	}
	n.applyCommand(rank, l)
}

// applyCommand answers one command of a rank.
func (n *Node) applyCommand(rank int, l pmiLine) {
	switch l.command {
	case "init":
		n.applyInit(rank, l)
	case "get_maxes":
		n.reply(rank, "cmd=maxes rc=0 kvsname_max="+strconv.Itoa(MaxKVSName)+" keylen_max="+strconv.Itoa(MaxKey)+
			" vallen_max="+strconv.Itoa(MaxValue))
	case "get_appnum":
		n.reply(rank, "cmd=appnum rc=0 appnum=0")
	case "get_my_kvsname":
		n.reply(rank, "cmd=my_kvsname rc=0 kvsname="+n.spec.KVSName)
	case "get_universe_size":
		n.reply(rank, "cmd=universe_size rc=0 size="+strconv.Itoa(n.spec.Size))
	case "put":
		n.applyPut(rank, l)
	case "get":
		n.applyGet(rank, l)
	case "barrier_in":
		n.enterBarrier(rank)
	case "finalize":
		n.ranks[rank].phase = Finalised
		n.reply(rank, "cmd=finalize_ack rc=0")
	case "abort":
		n.applyAbort(rank, l)
	case "publish_name":
		n.reply(rank, "cmd=publish_result rc=-1 msg=not_supported")
	case "unpublish_name":
		n.reply(rank, "cmd=unpublish_result rc=-1 msg=not_supported")
	case "lookup_name":
		n.reply(rank, "cmd=lookup_result rc=-1 msg=not_supported")
	case "getbyidx":
		n.reply(rank, "cmd=getbyidx_results rc=-1 reason=not_supported")
	case "spawn":
		n.ranks[rank].spawning = true
	default:
		n.failProtocol(rank, "the command "+quoted(l.command))
	}
}

// quoted is the beginning of what a rank has sent, for a message.
func quoted(s string) string { return strconv.Quote(s[:min(len(s), 60)]) }

// reply sends a rank one line.
func (n *Node) reply(rank int, line string) {
	n.replies = append(n.replies, Reply{Rank: rank, Data: line + "\n"})
}

// applyInit begins the conversation. The version that the rank names has to be 1 or 2.
// One of PMI-2 says the rest in that protocol.
func (n *Node) applyInit(rank int, l pmiLine) {
	version, _ := l.word("pmi_version")
	r := &n.ranks[rank]
	if version == "2" && r.phase == Launched {
		r.isPMI2 = true
		n.reply(rank, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0")
		return
	}
	if version != "1" {
		n.reply(rank, "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1")
		n.failProtocol(rank, "it wants version "+quoted(version))
		return
	}
	if r.phase == Launched || r.phase == Finalised {
		r.phase = Initialised
	}
	r.spoke = true
	if i := n.endedSilently(); i >= 0 {
		n.fail(i, 1, endedSilently)
		return
	}
	n.reply(rank, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1")
}

// isOwnKVS reports whether a line is about the one key-value space that there is.
func (n *Node) isOwnKVS(l pmiLine) bool {
	name, ok := l.word("kvsname")
	return ok && name == n.spec.KVSName
}

// applyPut takes in a key. Others can get it after the next barrier.
func (n *Node) applyPut(rank int, l pmiLine) {
	key, _ := l.word("key")
	value, ok := l.value()
	problem := "key_or_value_too_long"
	switch {
	case !n.isOwnKVS(l):
		problem = "wrong_kvsname"
	case ok:
		problem = n.put(rank, key, value)
	}
	if problem != "" {
		n.reply(rank, "cmd=put_result rc=-1 msg="+problem)
		return
	}
	n.reply(rank, "cmd=put_result rc=0 msg=success")
}

// put takes in a key of a rank. It returns why it cannot, in one word; empty: it has.
func (n *Node) put(rank int, key, value string) (problem string) {
	size := len(key) + len(value) + 4
	switch {
	case key == "" || len(key) >= MaxKey || len(value) >= MaxValue:
		return "key_or_value_too_long"
	case n.written[rank]+size > maxRankKeys || len(n.keys)+size > MaxGangKeys:
		return "too_many_keys_before_a_barrier"
	}
	n.written[rank] += size
	n.keys = n.keys.add(key, value)
	n.own[strings.Clone(key)] = value
	return ""
}

// applyGet answers with the value of a key.
func (n *Node) applyGet(rank int, l pmiLine) {
	key, _ := l.word("key")
	if !n.isOwnKVS(l) {
		n.reply(rank, "cmd=get_result rc=-1 msg=wrong_kvsname value=unknown")
		return
	}
	if value, ok := n.lookup(key); ok {
		n.reply(rank, "cmd=get_result rc=0 msg=success value="+value)
		return
	}
	n.reply(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown")
}

// lookup finds a key. The sets are indexed when the first rank asks: most nodes of a
// large gang ask for few keys, and some for none.
func (n *Node) lookup(key string) (string, bool) {
	if n.found == nil {
		n.found = map[string]string{mappingKey: n.spec.ProcessMapping()}
	}
	for ; n.indexed < len(n.sets); n.indexed++ {
		n.sets[n.indexed].index(n.found)
		n.sets[n.indexed] = nil // the index has its texts
	}
	if value, ok := n.own[key]; ok {
		return value, true
	}
	value, ok := n.found[key]
	return value, ok
}

// enterBarrier takes in that a rank waits for all others.
func (n *Node) enterBarrier(rank int) {
	r := &n.ranks[rank]
	r.waits = true
	if r.phase == Initialised {
		r.phase = InBarrier
	}
	n.waiting++
	if n.left < len(n.ranks) {
		n.fail(rank, 1, endedBefore)
		return
	}
	if n.waiting == len(n.ranks) {
		n.entered = true
		clear(n.own)
		n.messages = append(n.messages, Message{Kind: Barrier, Epoch: n.epoch + 1, Data: n.keys})
	}
}

// applyAbort ends the gang with the code that a rank gives.
func (n *Node) applyAbort(rank int, l pmiLine) {
	text, _ := l.word("exitcode")
	code, err := strconv.ParseInt(text, 10, 32)
	if err != nil || code == 0 {
		code = 1
	}
	n.ranks[rank].closed = true
	n.replies = append(n.replies, Reply{Rank: rank, Close: true})
	n.fail(rank, int32(code), "has called MPI_Abort with code "+strconv.FormatInt(code, 10))
}
