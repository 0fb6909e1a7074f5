package dag

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader cuts a file into lines, of which it reads one at a time. A backslash at the
// end of a line joins the next one to it.
type lineReader struct {
	in     *bufio.Reader
	line   int    // number of the last physical line
	first  int    // number of the first physical line of the logical one
	long   []byte // a line that the buffer does not hold as a whole
	joined []byte
}

// maxLineSize bounds one logical line.
const maxLineSize = 64 << 20

var errLineSize = errors.New("a line has more than 64 MiB")

func newLineReader(r io.Reader, size int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, size)}
}

// physical returns the next line without its end. What it returns is overwritten by the
// next call.
func (r *lineReader) physical() ([]byte, error) {
	text, err := r.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		r.long = append(r.long[:0], text...)
		for err == bufio.ErrBufferFull {
			if len(r.long) > maxLineSize {
				return nil, errLineSize
			}
			text, err = r.in.ReadSlice('\n')
			r.long = append(r.long, text...)
		}
		text = r.long
	}
	if err != nil && (err != io.EOF || len(text) == 0) {
		return nil, err
	}
	r.line++
	if r.line == 1 {
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	return bytes.TrimSuffix(text, []byte("\r")), nil
}

// next returns the next line with those that continue it. It skips empty lines and
// comments.
func (r *lineReader) next() ([]byte, error) {
	for {
		text, err := r.physical()
		if err != nil {
			return nil, err
		}
		if isSkipped(text) {
			continue
		}
		r.first = r.line
		if text[len(text)-1] != '\\' {
			return text, nil
		}
		r.joined = append(r.joined[:0], text[:len(text)-1]...)
		for {
			text, err = r.physical()
			if err == io.EOF {
				return r.joined, nil
			}
			if err != nil {
				return nil, err
			}
			more := bytes.HasSuffix(text, []byte(`\`))
			r.joined = append(r.joined, bytes.TrimSuffix(text, []byte(`\`))...)
			if len(r.joined) > maxLineSize {
				return nil, errLineSize
			}
			if !more {
				return r.joined, nil
			}
		}
	}
}

// isSkipped reports whether a line has nothing but blanks or a comment.
func isSkipped(line []byte) bool {
	for i, c := range line {
		switch {
		case isBlank(c):
		case c == '#':
			return true
		default:
			return c == '/' && i+1 < len(line) && line[i+1] == '/'
		}
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' }
