package pmi

import (
	"bytes"
	"testing"
)

// FuzzNode sends the bytes of two ranks to a node. It must neither panic nor hold more
// than its bounds.
func FuzzNode(f *testing.F) {
	f.Add([]byte(initLine+"cmd=put kvsname=kvs key=a value=b c\ncmd=barrier_in\n"), []byte(initLine), uint8(7))
	f.Add([]byte("mcmd=spawn\nendcmd\n"), []byte(initLine+"cmd=abort exitcode=3\n"), uint8(1))
	f.Add([]byte(initLine+"cmd=get value= key=a kvsname=kvs\ncmd=finalize\n"), []byte("cmd"), uint8(3))
	f.Add([]byte(initLine2+frame("cmd=fullinit;")+frame("cmd=kvs-put;key=a;value=b;;;")+frame("cmd=kvs-fence;")),
		[]byte(initLine2+frame("cmd=fullinit;")+frame("cmd=info-getnodeattr;key=a;wait=TRUE;")), uint8(200))
	f.Fuzz(func(t *testing.T, a, b []byte, step uint8) {
		n := NewNode(NodeSpec{KVSName: "kvs", Ranks: 2, Size: 2, Nodes: 1})
		c := NewCollector(1)
		inputs := [2][]byte{a, b}
		for len(inputs[0])+len(inputs[1]) > 0 {
			for rank := range inputs {
				part := inputs[rank][:min(len(inputs[rank]), int(step)+1)]
				inputs[rank] = inputs[rank][len(part):]
				n.ApplyInput(rank, part)
				n.TakeReplies()
				for _, m := range n.TakeMessages() {
					for _, e := range c.Apply(0, m) {
						n.ApplyMessage(e.Message)
					}
					c.check()
				}
			}
		}
		for rank := range n.ranks {
			most := 2 * maxLine
			if n.ranks[rank].isPMI2 {
				most += lengthSize + maxFrame
			}
			if len(n.ranks[rank].input) > most || n.attributeBytes > maxNodeAttributes ||
				n.written[rank] > maxRankKeys {
				t.Fatalf("rank %d: %d bytes of input, %d of keys", rank, len(n.ranks[rank].input), n.written[rank])
			}
			n.ApplyClosed(rank)
			n.ApplyExit(rank, 0, "")
		}
	})
}

// FuzzMessages sends a collector and a node messages with any bytes in them.
func FuzzMessages(f *testing.F) {
	m := Message{Kind: Barrier, Epoch: 1, Data: KeySet(nil).add("a", "b")}
	r := Message{Kind: Release, Epoch: 1, Data: []byte{200, 1, 'x'}}
	f.Add(m.Append(nil), r.Append(nil))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		c := NewCollector(2)
		n := NewNode(NodeSpec{KVSName: "kvs", Ranks: 1, Size: 2, Nodes: 2})
		n.ApplyInput(0, []byte(initLine+"cmd=barrier_in\n"))
		for i, text := range [][]byte{a, b, b, a} {
			m, ok := DecodeMessage(text)
			if !ok {
				continue
			}
			again, ok := DecodeMessage(m.Append(nil))
			if !ok || again.Kind != m.Kind || !bytes.Equal(again.Data, m.Data) {
				t.Fatalf("%+v became %+v", m, again)
			}
			c.Apply(i%2, m)
			c.check()
			n.ApplyMessage(m)
			n.ApplyInput(0, []byte("cmd=get kvsname=kvs key=a\n"))
		}
	})
}
