package eventlog

import "google.golang.org/protobuf/encoding/protowire"

// append adds what is known of tasks beyond their states.
func (b *TaskRecords) append(buf []byte) []byte {
	if b.recordStore == nil {
		return buf
	}
	for _, name := range b.nodes {
		buf = protowire.AppendString(protowire.AppendTag(buf, sNode, protowire.BytesType), name)
	}
	for first := 0; first < len(b.refs); {
		last := first
		switch b.refs[first].kind() {
		case refOwn:
			buf = appendMessage(buf, sRecord, func(buf []byte) []byte {
				return b.Own(first).append(appendNumber(buf, 1, uint64(first)))
			})
		case refShared:
			last = runEnd(b.refs, first)
			buf = appendMessage(buf, sRecord, func(buf []byte) []byte {
				return appendNumber(b.Get(first).append(appendNumber(buf, 1, uint64(first))), 19, uint64(last))
			})
		case refSuccess:
			for last+1 < len(b.refs) && b.refs[last+1].kind() == refSuccess {
				last++
			}
			buf = appendMessage(buf, sFinished, func(buf []byte) []byte { return b.appendSuccesses(buf, first, last) })
		}
		first = last + 1
	}
	return buf
}
