package userlog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/schedd/queue"
)

// maxRescues is the highest number of a rescue file, DAGMAN_MAX_RESCUE_NUM of DAGMan. The
// last one is written over.
const maxRescues = 100

// WriteRescue writes a rescue file under the number behind the newest one, and returns
// its name.
func WriteRescue(ctx context.Context, agents Agents, r queue.FlowRescue) (file string, err error) {
	a, err := agents.Agent(r.UID, r.GID)
	if err != nil {
		return "", err
	}
	base, first := filepath.Split(r.Base)
	name := ""
	for number := 1; number <= maxRescues; number++ {
		name = fmt.Sprintf("%s.rescue%03d", first, number)
		if _, err := a.Stat(ctx, base, name); errors.Is(err, roost.NoInput) {
			break
		} else if err != nil {
			return "", err
		}
	}
	f, err := a.Create(ctx, base, name, userfiles.CreateOptions{Sync: true})
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.Write([]byte(r.Text)); err != nil {
		return "", err
	}
	return filepath.Join(base, name), f.Commit()
}

// maxSavePoint bounds the size of a save point of which a copy is made.
const maxSavePoint = 1 << 30

// WriteSavePoint writes a save point, whose name is r.Base. A file of that name is called
// NAME.old from then on.
func WriteSavePoint(ctx context.Context, agents Agents, r queue.FlowRescue) error {
	a, err := agents.Agent(r.UID, r.GID)
	if err != nil {
		return err
	}
	base, name := filepath.Split(r.Base)
	switch info, err := a.Stat(ctx, base, name); {
	case err == nil && info.Size <= maxSavePoint:
		if err := copyFile(ctx, a, base, name, name+".old"); err != nil {
			return err
		}
	case errors.Is(err, roost.NoInput):
		parent, directory := filepath.Split(filepath.Clean(base))
		if err := a.Mkdir(ctx, parent, directory, 0o755); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	return replaceFile(ctx, a, base, name, func(w io.Writer) error {
		_, err := io.WriteString(w, r.Text)
		return err
	})
}

// copyFile copies a file of a directory.
func copyFile(ctx context.Context, a *userfiles.Agent, base, name, to string) error {
	from, err := a.Open(ctx, base, name, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	return replaceFile(ctx, a, base, to, func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
}

// replaceFile writes a file, which is there as a whole or not at all.
func replaceFile(ctx context.Context, a *userfiles.Agent, base, name string, write func(io.Writer) error) error {
	f, err := a.Create(ctx, base, name, userfiles.CreateOptions{Sync: true})
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, userfiles.ChunkSize)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Commit()
}
