package peers

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// ListRow is one row of a list: a message, or the encoding of one.
type ListRow struct {
	SubmittedAt int64 // when the job was submitted, or the one whose place it has
	Status      *wire.JobStatus
	Text        []byte
}

// StatusMessage is the row as a message.
func (t ListRow) StatusMessage() (*wire.JobStatus, error) {
	if t.Status != nil {
		return t.Status, nil
	}
	m := &wire.JobStatus{}
	return m, proto.Unmarshal(t.Text, m)
}

// encodedText is the row in its encoding.
func (t ListRow) encodedText() ([]byte, error) {
	if t.Status == nil {
		return t.Text, nil
	}
	return proto.Marshal(t.Status)
}

// SelectionError says why a word stands for nothing.
func SelectionError(word string, err error) *wire.Refused {
	return &wire.Refused{Selector: word, Kind: uint32(rpc.KindOf(err)),
		Text: strings.ToValidUTF8(err.Error(), "\ufffd")}
}
