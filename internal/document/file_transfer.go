package document

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// FileTransfer is a transfer of files of a task that is under way.
type FileTransfer struct {
	Kind    string  `json:"kind"` // "input", "output", "checkpoint", "restore" or "container image"
	Bytes   int64   `json:"bytes"`
	Total   int64   `json:"total_bytes"`
	Elapsed float64 `json:"elapsed_seconds"` // since the first byte; 0: it waits for its turn
	Waits   string  `json:"waits,omitempty"` // why nothing is transferred now
	Text    string  `json:"text"`            // the same in words, with rate and time left
}

// FileTransfersOf returns the documents of the transfers of a task.
func FileTransfersOf(s *scheddapi.JobStatus) (list []FileTransfer) {
	for _, m := range s.GetTransfers() {
		list = append(list, FileTransfer{Kind: m.GetKind(), Bytes: m.GetBytes(), Total: m.GetTotal(),
			Elapsed: time.Duration(m.GetElapsed()).Seconds(), Waits: m.GetWaits(),
			Text: TransferText(m)})
	}
	return list
}

// TransferText describes a transfer: "input: 120MiB of 1GiB, 30MiB/s, 29s left".
func TransferText(m *scheddapi.FileTransfer) string {
	text := fmt.Sprintf("%s: %v of %v", m.GetKind(), roost.Bytes(m.GetBytes()), roost.Bytes(m.GetTotal()))
	if m.GetTotal() == 0 {
		text = m.GetKind() + ": none of it is there yet"
	}
	if m.GetWaits() != "" {
		return text + ", and no more comes now: " + PrintableText(m.GetWaits())
	}
	elapsed := time.Duration(m.GetElapsed())
	if elapsed == 0 {
		return text + ", waits for its turn"
	}
	const soon = 200 * time.Millisecond // a rate of less time says little
	if elapsed < soon || m.GetBytes() == 0 {
		return text
	}
	rate := float64(m.GetBytes()) / elapsed.Seconds()
	text += fmt.Sprintf(", %v/s", roost.Bytes(rate))
	if rest := m.GetTotal() - m.GetBytes(); rest > 0 {
		text += fmt.Sprintf(", %s left", SpanText(time.Duration(float64(rest)/rate*float64(time.Second))))
	}
	return text
}
