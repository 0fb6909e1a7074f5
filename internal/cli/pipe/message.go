package pipe

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/roost-batch/roost"
)

// Bounds of requests. A submission of 16 MiB, the longest job file, fits into one.
const (
	maxRequest   = 40 << 20 // bytes of a line; JSON may double the bytes of a job file
	maxArguments = 100_000
	maxRunning   = 256 // command lines at once
	maxChunk     = 64 << 10
	maxErrorText = 64 << 10
)

// request is a line that a program sends: a command line to run, or the end of one.
type request struct {
	Version   int      `json:"v"`
	ID        string   `json:"id"`
	Arguments []string `json:"args"`      // without the name of the program
	Input     string   `json:"input"`     // standard input of the command
	Directory string   `json:"directory"` // working directory of jobs; empty: that of the process
	Cancel    bool     `json:"cancel"`    // end the command line of that id
}

// answer is a line that goes back. One with Exit is the last of its request.
type answer struct {
	Version int     `json:"v"`
	ID      string  `json:"id,omitempty"`
	Text    *string `json:"out,omitempty"`   // output; whole lines, unless they are very long
	Bytes   []byte  `json:"bytes,omitempty"` // output that is not UTF-8, in base64
	Exit    *int    `json:"exit,omitempty"`
	Error   string  `json:"error,omitempty"` // what the command wrote to standard error
}

// greeting is the first line, sent unasked.
type greeting struct {
	Version  int    `json:"v"`
	Protocol int    `json:"protocol"` // rises only if older programs cannot use it
	Release  string `json:"roost"`
}

var validID = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// parseRequest reads a request and checks it.
func parseRequest(line []byte) (request, error) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return request{}, fmt.Errorf("%w: a line is not a request in JSON: %w", roost.Invalid, err)
	}
	switch {
	case !validID.MatchString(r.ID):
		return request{}, fmt.Errorf("%w: a request needs an id of 1 to 64 letters, digits, or any of _ . -",
			roost.Invalid)
	case r.Version != 1:
		return r, fmt.Errorf("%w: version %d of requests is not known here: version 1 is", roost.Invalid, r.Version)
	case r.Cancel:
		return r, nil
	case len(r.Arguments) == 0:
		return r, fmt.Errorf("%w: the command is missing in args", roost.Invalid)
	case len(r.Arguments) > maxArguments:
		return r, fmt.Errorf("%w: %d arguments: at most %d are read", roost.Invalid, len(r.Arguments), maxArguments)
	}
	return r, nil
}
