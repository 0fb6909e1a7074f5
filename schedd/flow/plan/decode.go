package plan

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
)

// The bounds of a plan.
const (
	MaxNodes    = 4 << 20 // with join nodes
	MaxExpanded = 1 << 30 // bytes
	maxRatio    = 256     // of MaxExpanded to the bytes that are sent; above a MiB
	maxTexts    = 16 << 20
	maxTables   = 1 << 20 // templates, scripts, settings
	maxArcs     = 64 << 20
)

// Decode returns the plan of a form. Its errors are of kind roost.Invalid, or
// roost.Exhausted where the plan is too large.
func Decode(form []byte) (*Plan, error) {
	r, size, err := openForm(form)
	if err != nil {
		return nil, err
	}
	p := &Plan{Graph: graph.New(), Texts: graph.NewTextTable(), Templates: make([]JobTemplate, 1),
		Settings: make([]NodeSettings, 1), Scripts: make([]NodeScript, 1), Categories: make([]Category, 1)}
	s := &sectionReader{from: bufio.NewReaderSize(r, 64<<10), left: int64(size)}
	read := map[int]func(*sectionReader){
		textSection: p.readTexts, templateSection: p.readTemplates, valueSection: p.readValues,
		scriptSection: p.readScripts, settingSection: p.readSettings, categorySection: p.readCategories,
		nodeSection: p.readNodes, arcSection: p.readArcs, flowSection: p.readFlow,
		reportSection: p.Reports.read,
	}
	before := 0
	for s.err == nil && s.left > 0 {
		number, length := s.number(1<<20), s.number(int(s.left))
		if s.err != nil {
			break
		}
		if number <= before {
			s.fail("section %d comes after section %d", number, before)
		}
		before = number
		body := &sectionReader{from: s.from, left: int64(length)}
		s.left -= int64(length)
		if f := read[number]; f != nil {
			f(body)
		} else {
			body.skip()
		}
		if body.err == nil && body.left != 0 {
			body.fail("section %d has %d bytes too many", number, body.left)
		}
		s.err = errors.Join(s.err, body.err)
	}
	if s.err == nil && before < flowSection {
		s.fail("it ends after section %d", before)
	}
	if s.err == nil {
		s.err = p.check()
	}
	if s.err != nil {
		return nil, fmt.Errorf("plan of a flow: %w", s.err)
	}
	return p, nil
}

// openForm reads the head of a form, and returns a reader of what follows.
func openForm(form []byte) (r io.Reader, size uint64, err error) {
	if len(form) == 0 || form[0] != formVersion {
		return nil, 0, fmt.Errorf("plan of a flow: %w: it begins with %.1x, and this program reads version %d; the "+
			"command that submits it is newer, or it is none", roost.Invalid, form, formVersion)
	}
	size, n := binary.Uvarint(form[1:])
	if n <= 0 {
		return nil, 0, fmt.Errorf("plan of a flow: %w: it has no size", roost.Invalid)
	}
	if size > MaxExpanded || size > 1<<20 && size/maxRatio > uint64(len(form)) {
		return nil, 0, fmt.Errorf("plan of a flow: %w: it has %v, and %v is the most; make several flows of it",
			roost.Exhausted, roost.Bytes(size), roost.Bytes(min(MaxExpanded, max(1<<20, len(form)*maxRatio))))
	}
	d, err := zstd.NewReader(bytes.NewReader(form[1+n:]), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(MaxExpanded), zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, 0, fmt.Errorf("plan of a flow: %w: %w", roost.Invalid, err)
	}
	return d.IOReadCloser(), size, nil
}

// sectionReader reads the numbers and texts of a section. After an error all others are
// zero.
type sectionReader struct {
	from *bufio.Reader
	left int64
	err  error
}

func (s *sectionReader) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: "+format, append([]any{roost.Invalid}, args...)...)
	}
	s.left = 0
}

// ReadByte implements io.ByteReader.
func (s *sectionReader) ReadByte() (byte, error) {
	if s.left <= 0 || s.err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	s.left--
	return s.from.ReadByte()
}

// peek returns the next bytes of the section, as many as a number may have.
func (s *sectionReader) peek() []byte {
	b, _ := s.from.Peek(int(min(s.left, binary.MaxVarintLen64)))
	return b
}

// take goes past a number of so many bytes, unless it is none or s has failed.
func (s *sectionReader) take(size int) bool {
	switch {
	case s.err != nil:
		return false
	case size <= 0:
		s.fail("it ends within a section, or a number is too long")
		return false
	}
	s.from.Discard(size)
	s.left -= int64(size)
	return true
}

// number reads a number from 0 to most.
func (s *sectionReader) number(most int) int {
	n, size := binary.Uvarint(s.peek())
	if !s.take(size) {
		return 0
	}
	if n > uint64(max(most, 0)) {
		s.fail("a number is %d, and %d is the most there", n, most)
		return 0
	}
	return int(n)
}

// signed reads a number of which the amount is at most that.
func (s *sectionReader) signed(most int) int {
	n, size := binary.Varint(s.peek())
	if !s.take(size) {
		return 0
	}
	if n > int64(most) || n < -int64(most) {
		s.fail("a number is %d, and its amount is at most %d there", n, most)
		return 0
	}
	return int(n)
}

// bytes reads a text of at most so many bytes.
func (s *sectionReader) bytes(most int) []byte {
	n := s.number(min(most, int(s.left)))
	if s.err != nil {
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(s.from, b); err != nil {
		s.fail("it ends within a text: %v", err)
		return nil
	}
	s.left -= int64(n)
	return b
}

func (s *sectionReader) text(most int) string { return string(s.bytes(most)) }

// texts reads a list of texts.
func (s *sectionReader) texts(most, mostBytes int) (list []string) {
	for range s.number(most) {
		if list = append(list, s.text(mostBytes)); s.err != nil {
			return nil
		}
	}
	return list
}

func (s *sectionReader) bits(to ...*bool) {
	n := s.number(1<<len(to) - 1)
	for i, b := range to {
		*b = n&(1<<i) != 0
	}
}

func (s *sectionReader) rule() (r flow.ExitRule) {
	s.bits(&r.IsSet)
	r.Code = s.signed(1 << 31)
	return r
}

// skip reads over the section.
func (s *sectionReader) skip() {
	if _, err := io.CopyN(io.Discard, s.from, s.left); err != nil {
		s.fail("it ends within a section")
	}
	s.left = 0
}
