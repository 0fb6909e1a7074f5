package transfer

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// discardOnSuccess reports whether an output file is no longer wanted. Its task has
// succeeded, and its job asked for that (qsub -R).
func (c *OutputFetch) discardOnSuccess(letters string) bool {
	s := c.Exited.GetStatus()
	return s.GetCause() == wire.Cause_CAUSE_EXITED && s.GetCode() == c.SuccessCode && s.GetSignal() == 0 &&
		strings.ContainsAny(c.RemoveOutput, letters)
}

// maxFileOffset is behind the end of every file.
const maxFileOffset = 1 << 62

// removeUnwanted removes unwanted output that the task has written in place, with its
// user's rights. It removes a file, and nothing else that may be there by now.
func (c *OutputFetch) removeUnwanted(ctx context.Context) error {
	for _, f := range [...]struct{ letter, path string }{{"o", c.Out}, {"e", c.Err}} {
		if c.scratch || f.path == "" || !c.discardOnSuccess(f.letter) {
			continue
		}
		agent, err := c.users.Agent(c.UID, c.GID)
		if err != nil {
			return err
		}
		path := AbsolutePath(c.Iwd, f.path)
		// it is a file, and no device that root could remove
		if _, _, err = agent.ReadAt(ctx, filepath.Dir(path), filepath.Base(path), maxFileOffset); err == nil {
			err = agent.RemoveAll(ctx, filepath.Dir(path), filepath.Base(path))
		}
		switch {
		case err == nil || errors.Is(err, roost.NoInput):
		case errors.Is(err, roost.Unavailable) || ctx.Err() != nil:
			return c.wireError(err)
		default: // the task has succeeded all the same
			c.log.Info("output is not removed", "attempt", c.Attempt, "error", err)
		}
	}
	return nil
}
