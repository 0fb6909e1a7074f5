package jobs

import (
	"bytes"
	"io"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// maxJSONLine is how many bytes of a line one document of JSON has. A longer line is
// several.
const maxJSONLine = 64 << 10

// stampedLines prints output with the time of each line before it. That is when the
// line's beginning was written.
type stampedLines struct {
	to      io.Writer
	within  bool   // a line has begun
	attempt uint32 // that began it
}

// print prints a piece of output.
func (p *stampedLines) print(chunk *scheddapi.LogChunk) error {
	if chunk.GetWrittenMs() == 0 && len(chunk.GetData()) > 0 {
		return frame.KindErrorf(roost.Conflict, "the times of this output are not known: it went to a file of the "+
			"job's, or the machine or the schedd has an older version; leave out --timestamps")
	}
	text := time.UnixMilli(chunk.GetWrittenMs()).Format(time.RFC3339) + " "
	var b bytes.Buffer
	if p.within && p.attempt != chunk.GetAttempt() {
		b.WriteByte('\n')
		p.within = false
	}
	for line := range bytes.Lines(chunk.GetData()) {
		if !p.within {
			b.WriteString(text)
		}
		b.Write(line)
		p.within, p.attempt = line[len(line)-1] != '\n', chunk.GetAttempt()
	}
	_, err := p.to.Write(b.Bytes())
	return err
}

// jsonLines prints output as a document of JSON for each line.
type jsonLines struct {
	to     io.Writer
	begun  *scheddapi.LogChunk // the place of the line that has begun, without its text
	text   []byte              // of that line
	stderr bool
}

// logLine is a line of output in JSON.
type logLine struct {
	Attempt uint32 `json:"attempt"`
	Stream  string `json:"stream"`
	Offset  int64  `json:"offset"`
	Time    string `json:"time,omitempty"`
	Text    string `json:"text"`
}

// print prints the lines that end in a piece of output.
func (p *jsonLines) print(chunk *scheddapi.LogChunk) error {
	if p.begun != nil && (p.begun.GetAttempt() != chunk.GetAttempt() ||
		p.begun.GetOffset()+int64(len(p.text)) != chunk.GetOffset()) {
		if err := p.flush(); err != nil {
			return err
		}
	}
	offset := chunk.GetOffset()
	for line := range bytes.Lines(chunk.GetData()) {
		if p.begun == nil {
			p.begun = &scheddapi.LogChunk{Attempt: chunk.GetAttempt(), Offset: offset, WrittenMs: chunk.GetWrittenMs()}
		}
		p.text = append(p.text, line...)
		offset += int64(len(line))
		if line[len(line)-1] == '\n' || len(p.text) >= maxJSONLine {
			if err := p.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush prints the line that has begun.
func (p *jsonLines) flush() error {
	if p.begun == nil {
		return nil
	}
	l := logLine{Attempt: p.begun.GetAttempt(), Stream: "stdout", Offset: p.begun.GetOffset(),
		Text: string(bytes.TrimSuffix(p.text, []byte("\n")))}
	if p.stderr {
		l.Stream = "stderr"
	}
	if ms := p.begun.GetWrittenMs(); ms != 0 {
		l.Time = time.UnixMilli(ms).UTC().Format(time.RFC3339)
	}
	p.begun, p.text = nil, p.text[:0]
	return frame.PrintLine(p.to, frame.JSONDocument{"line": l})
}
