package document

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// StoredOutput is what an attempt wrote that is on the checkpoint server.
type StoredOutput struct {
	StdoutBytes int64 `json:"stdout_bytes"`
	StderrBytes int64 `json:"stderr_bytes"`
	Files       int64 `json:"files"` // and directories
	FileBytes   int64 `json:"file_bytes"`
}

// StoredOutputOf returns the document of an attempt's stored output; nil for none.
func StoredOutputOf(e *scheddapi.ExitStatus) *StoredOutput {
	o := e.GetStored()
	if o == nil {
		return nil
	}
	return &StoredOutput{o.GetOutBytes(), o.GetErrBytes(), o.GetFiles(), o.GetFileBytes()}
}

// Text says what is stored: "12B of standard output, 3 files of 1.2MiB".
func (o *StoredOutput) Text() string {
	var parts []string
	for _, stream := range []struct {
		size int64
		name string
	}{{o.StdoutBytes, "standard output"}, {o.StderrBytes, "standard error"}} {
		if stream.size > 0 {
			parts = append(parts, fmt.Sprintf("%v of %s", roost.Bytes(stream.size), stream.name))
		}
	}
	switch {
	case o.Files == 1:
		parts = append(parts, fmt.Sprintf("1 file of %v", roost.Bytes(o.FileBytes)))
	case o.Files > 1:
		parts = append(parts, fmt.Sprintf("%d files of %v", o.Files, roost.Bytes(o.FileBytes)))
	case len(parts) == 0:
		return "on the checkpoint server"
	}
	return strings.Join(parts, ", ")
}
