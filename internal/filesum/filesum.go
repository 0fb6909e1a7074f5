// Package filesum appends a line with a checksum to a small text file, so that a flipped
// bit is detected when the file is read.
package filesum

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// ErrDamaged means that a file is not as it was written.
var ErrDamaged = errors.New("the file is damaged: its checksum is wrong")

// checksumPrefix begins the last line.
const checksumPrefix = "crc32c "

func checksumLine(text []byte) string {
	return fmt.Sprintf("%s%08x\n", checksumPrefix, crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

// AppendChecksum returns a text with the line of its checksum. A missing newline at the
// end of the text is added.
func AppendChecksum(text []byte) []byte {
	text = bytes.Clone(text)
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	return append(text, checksumLine(text)...)
}

// VerifyChecksum returns a text without the line of its checksum. A text of an older
// release has no such line and is returned as it is. So its reader must refuse any line
// that it does not know, or a flipped bit could make a new file look like an old one.
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
