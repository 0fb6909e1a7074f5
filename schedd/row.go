package schedd

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// tableRow is a row on its way to who asked: as a message, or where it is at hand in its
// encoding.
type tableRow struct {
	submittedAt int64 // when the job was submitted, or the one whose place it has
	status      *wire.JobStatus
	text        []byte
}

// statusMessage is the row as a message.
func (t tableRow) statusMessage() (*wire.JobStatus, error) {
	if t.status != nil {
		return t.status, nil
	}
	m := &wire.JobStatus{}
	return m, proto.Unmarshal(t.text, m)
}

// encodedText is the row in its encoding.
func (t tableRow) encodedText() ([]byte, error) {
	if t.status == nil {
		return t.text, nil
	}
	return proto.Marshal(t.status)
}

// selectionError says why a word stands for nothing.
func selectionError(word string, err error) *wire.Refused {
	return &wire.Refused{Selector: word, Kind: uint32(rpc.KindOf(err)),
		Text: strings.ToValidUTF8(err.Error(), "\ufffd")}
}
