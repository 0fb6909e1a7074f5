package jobs

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// MaxInline is how many bytes of a script the ad of its job may hold. A larger one is
// sent to the schedd before, and the ad names it.
const MaxInline = 1 << 20

// maxFirstLine is how many bytes of a first line that names an interpreter are looked at.
// Linux looks at fewer (execve(2)).
const maxFirstLine = 4096

// scriptPiece is how much of it goes in one message.
const scriptPiece = 256 << 10

// uploadTimeout is how long the sending of one may take.
const uploadTimeout = 5 * time.Minute

// uploadScript has the schedd keep a script that is too large for its job's ad.
func uploadScript(c *frame.Invocation, job *jobspec.Job, sent func(bytes int)) error {
	text, _ := job.Ad.Str(roost.AttrScript)
	if len(text) <= MaxInline {
		return nil
	}
	s, err := c.ConnectSchedd()
	if err != nil {
		return err
	}
	var reply *scheddapi.ScriptReply
	if err := c.Retry(frame.SubmitTimeout, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
		defer cancel()
		to, err := s.KeepScript(ctx)
		for rest := text; err == nil && rest != ""; {
			n := min(len(rest), scriptPiece)
			err = to.Send(&scheddapi.ScriptChunk{Data: []byte(rest[:n])})
			rest = rest[n:]
			if sent != nil {
				sent(n)
			}
		}
		if err == nil || errors.Is(err, io.EOF) { // of the latter the cause comes with the answer
			reply, err = to.CloseAndRecv()
		}
		return frame.DecodeError(err)
	}); err != nil {
		return err
	}
	job.Ad.Delete(roost.AttrScript)
	// it may say what runs it
	if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "#!") && len(first) <= maxFirstLine {
		job.Ad.SetString(roost.AttrScript, first+"\n")
	}
	job.Ad.SetString(roost.AttrScriptFile, reply.GetName())
	return nil
}
