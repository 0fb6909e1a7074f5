package criu

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost/checkpoint/image"
)

// imageMetadata is what an image contains beside CRIU's files.
type imageMetadata struct {
	Mounts  []ExternalMount
	Pins    []threadAffinity `json:",omitempty"`
	Streams map[string]int64 `json:",omitempty"` // lengths of the streams in bytes
	IO      []capturedFile   `json:",omitempty"`
	Nested  bool             `json:",omitempty"` // the task has a user namespace of its own
	Scratch bool             `json:",omitempty"`
}

// capturedFile is a file of the directory for captured output.
type capturedFile struct {
	Name     string
	Mode     fs.FileMode
	UID, GID int
}

func (n *imageMetadata) write(dir string) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, image.CRIUDir, metadataName), text, 0o600)
}

func readNote(dir string) (n imageMetadata, err error) {
	text, err := os.ReadFile(filepath.Join(dir, image.CRIUDir, metadataName))
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return n, fmt.Errorf("image: %w", err)
	}
	return n, nil
}
