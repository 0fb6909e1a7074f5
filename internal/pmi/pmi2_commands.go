package pmi

import (
	"strconv"
	"strings"
)

// attributeWait is a rank that waits until its node has an attribute.
type attributeWait struct {
	rank   int
	key    string
	thread string
}

// maxNodeAttributes bounds the attributes of a node, in bytes.
const maxNodeAttributes = 256 << 10

// applyFrame takes in one command of PMI-2 and answers it.
func (n *Node) applyFrame(rank int, text string) {
	r := &n.ranks[rank]
	c, ok := parseFrame(text)
	switch {
	case !ok:
		n.failProtocol(rank, "the command "+quoted(text))
		return
	case r.waits && c.name != "abort" && c.values["thrid"] == "":
		n.failProtocol(rank, quoted(c.name)+" while it waits in a fence")
		return
	case r.phase == Launched && c.name != "fullinit":
		n.failProtocol(rank, quoted(c.name)+" comes before fullinit")
		return
	}
	switch c.name {
	case "fullinit":
		n.applyFullInit(rank, c)
	case "finalize":
		r.phase = Finalised
		n.answer(rank, c, "rc", "0")
	case "abort":
		n.applyAbortMessage(rank, c)
	case "job-getid":
		n.answer(rank, c, "jobid", n.spec.KVSName, "rc", "0")
	case "job-disconnect":
		n.answer(rank, c, "rc", "0")
	case "kvs-put":
		n.applyKVSPut(rank, c)
	case "kvs-get":
		n.applyKVSGet(rank, c)
	case "kvs-fence":
		if r.waits {
			n.failProtocol(rank, "a fence while it waits in one")
			return
		}
		r.fenceThread = c.values["thrid"]
		n.enterBarrier(rank)
	case "info-getjobattr":
		value, found := n.jobAttribute(c.values["key"])
		n.answerValue(rank, c, value, found)
	case "info-putnodeattr":
		n.putNodeAttribute(rank, c)
	case "info-getnodeattr":
		n.getNodeAttribute(rank, c)
	case "spawn", "job-connect", "name-publish", "name-unpublish", "name-lookup":
		n.answer(rank, c, "rc", "-1", "errmsg", c.name+" is not supported")
	default:
		n.failProtocol(rank, "the command "+quoted(c.name))
	}
}

// answer answers a command of PMI-2.
func (n *Node) answer(rank int, c pmi2Command, pairs ...string) {
	n.replies = append(n.replies, Reply{Rank: rank, Data: answerFrame(c.name, c.values["thrid"], pairs...)})
}

// answerValue answers a command that asks for a value.
func (n *Node) answerValue(rank int, c pmi2Command, value string, found bool) {
	if !found {
		n.answer(rank, c, "found", "FALSE", "rc", "0")
		return
	}
	n.answer(rank, c, "found", "TRUE", "value", value, "rc", "0")
}

// applyFullInit begins the conversation. What the rank says of its number is not needed:
// its socket is known.
func (n *Node) applyFullInit(rank int, c pmi2Command) {
	r := &n.ranks[rank]
	if r.phase == Launched || r.phase == Finalised {
		r.phase = Initialised
	}
	r.spoke = true
	if i := n.endedSilently(); i >= 0 {
		n.fail(i, 1, endedSilently)
		return
	}
	n.answer(rank, c, "pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(n.spec.FirstRank+rank),
		"size", strconv.Itoa(n.spec.Size), "appnum", "0", "debugged", "FALSE", "pmiverbose", "FALSE", "rc", "0")
}

// applyKVSPut takes in a key. Others can get it after the next fence.
func (n *Node) applyKVSPut(rank int, c pmi2Command) {
	if problem := n.put(rank, c.values["key"], c.values["value"]); problem != "" {
		n.answer(rank, c, "rc", "-1", "errmsg", problem)
		return
	}
	n.answer(rank, c, "rc", "0")
}

// applyKVSGet answers with the value of a key. Which rank has put it, as the library may
// guess, makes no difference.
func (n *Node) applyKVSGet(rank int, c pmi2Command) {
	if job := c.values["jobid"]; job != "" && job != n.spec.KVSName {
		n.answer(rank, c, "found", "FALSE", "rc", "-1", "errmsg", "another job")
		return
	}
	value, found := n.lookup(c.values["key"])
	n.answerValue(rank, c, value, found)
}

// jobAttribute is a fact about the job.
func (n *Node) jobAttribute(key string) (string, bool) {
	switch key {
	case mappingKey:
		value := n.spec.ProcessMapping()
		return value, value != ""
	case "universeSize":
		return strconv.Itoa(n.spec.Size), true
	case "hasNameServ":
		return "FALSE", true
	}
	return "", false
}

// putNodeAttribute takes in what the ranks of this node tell each other, and answers
// those who wait for it.
func (n *Node) putNodeAttribute(rank int, c pmi2Command) {
	key, value := c.values["key"], c.values["value"]
	size := len(key) + len(value)
	if key == "" || len(key) >= MaxKey || len(value) >= MaxValue || n.attributeBytes+size > maxNodeAttributes {
		n.answer(rank, c, "rc", "-1", "errmsg", "key_or_value_too_long")
		return
	}
	if n.attributes == nil {
		n.attributes = map[string]string{}
	}
	n.attributeBytes += size
	n.attributes[key] = value
	n.answer(rank, c, "rc", "0")
	var left []attributeWait
	for _, w := range n.attributeWaits {
		if w.key != key {
			left = append(left, w)
			continue
		}
		if !n.ranks[w.rank].closed {
			get := pmi2Command{name: "info-getnodeattr", values: map[string]string{"thrid": w.thread}}
			n.answerValue(w.rank, get, value, true)
		}
	}
	n.attributeWaits = left
}

// getNodeAttribute answers with an attribute of the node, at once or when it is there.
func (n *Node) getNodeAttribute(rank int, c pmi2Command) {
	key := c.values["key"]
	value, found := n.attributes[key]
	if !found && c.values["wait"] == "TRUE" {
		if len(n.attributeWaits) >= maxAttributeWaits*len(n.ranks) || len(key) >= MaxKey {
			n.failProtocol(rank, "it waits for too many attributes of its node")
			return
		}
		n.attributeWaits = append(n.attributeWaits, attributeWait{rank, key, c.values["thrid"]})
		return
	}
	n.answerValue(rank, c, value, found)
}

// maxAttributeWaits bounds how many attributes the threads of a rank wait for.
const maxAttributeWaits = 64

// applyAbortMessage ends the gang with the code in the message of a rank. MPI libraries
// write "application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1".
func (n *Node) applyAbortMessage(rank int, c pmi2Command) {
	text := c.values["msg"]
	code := int64(1)
	if _, call, ok := strings.Cut(text, "MPI_Abort("); ok {
		call, _, _ = strings.Cut(call, ")")
		number := strings.TrimSpace(call[strings.LastIndex(call, ",")+1:])
		if given, err := strconv.ParseInt(number, 10, 32); err == nil && given != 0 {
			code = given
		}
	}
	n.ranks[rank].closed = true
	n.replies = append(n.replies, Reply{Rank: rank, Close: true})
	what := "has called MPI_Abort with code " + strconv.FormatInt(code, 10)
	if text != "" {
		what += ": " + strconv.Quote(text[:min(len(text), maxAbortText)])
	}
	n.fail(rank, int32(code), what)
}

// maxAbortText bounds what is repeated of the message of an abort, in bytes.
const maxAbortText = 200
