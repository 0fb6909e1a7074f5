// Package filesum gives a small file of text a last line with its checksum, so that a bit
// that a disk has flipped is noticed when the file is read.
package filesum

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrDamaged is that a file is not as it was written.
var ErrDamaged = errors.New("the file is damaged: its checksum is wrong")

// checksumPrefix is what the last line begins with.
const checksumPrefix = "crc32c "

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksumLine(text []byte) string {
	return fmt.Sprintf("%s%08x\n", checksumPrefix, crc32.Checksum(text, castagnoli))
}

// AppendChecksum returns a text, which ends with a newline or gets one, with the line of
// its checksum.
func AppendChecksum(text []byte) []byte {
	text = bytes.Clone(text)
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	return append(text, checksumLine(text)...)
}

// VerifyChecksum returns a text without the line of its checksum. A text of before files
// had one has none: it is returned as it is, and what reads it must refuse any line that
// is not its own, or a flipped bit could make one of now look like one of then.
func VerifyChecksum(text []byte) ([]byte, error) {
	at := bytes.LastIndexByte(bytes.TrimSuffix(text, []byte("\n")), '\n') + 1
	last := text[at:]
	if !bytes.HasPrefix(last, []byte(checksumPrefix)) {
		return text, nil
	}
	if string(last) != checksumLine(text[:at]) {
		return nil, ErrDamaged
	}
	return text[:at], nil
}
