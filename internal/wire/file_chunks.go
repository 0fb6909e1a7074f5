package wire

import (
	"io"

	"google.golang.org/protobuf/encoding/protodelim"
)

// MaxStoredChunk bounds a message of a stored set of files, in bytes.
const MaxStoredChunk = 4 << 20

// WriteFileChunk writes a message after its length.
func WriteFileChunk(w io.Writer, m *FileChunk) error {
	_, err := protodelim.MarshalTo(w, m)
	return err
}

// ReadFileChunk reads what WriteFileChunk wrote. At the end it returns io.EOF.
func ReadFileChunk(r protodelim.Reader) (*FileChunk, error) {
	m := &FileChunk{}
	if err := (protodelim.UnmarshalOptions{MaxSize: MaxStoredChunk}).UnmarshalFrom(r, m); err != nil {
		return nil, err
	}
	return m, nil
}
