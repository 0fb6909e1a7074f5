package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// pulledImage is what roost image pull says of an image, as JSON.
type pulledImage struct {
	Digest      string   `json:"digest"`
	Size        int64    `json:"size"`
	Environment []string `json:"environment"`
	Entrypoint  []string `json:"entrypoint"`
	Command     []string `json:"command"`
	Workdir     string   `json:"workdir"`
	User        string   `json:"user"`
}

// pinContainer finds out which image a job means, and puts it into the store of the pool.
// So a tag that moves later does not change the job. The images of jobs that are
// submitted together are pulled once.
func (n *namePins) pinContainer(c *frame.Invocation, job *jobspec.Job) error {
	name, ok := job.Ad.Str(roost.AttrContainerImage)
	if _, pinned := job.Ad.Str(roost.AttrContainerDigest); !ok || pinned {
		return nil
	}
	if imageref.ValidDigest(name) {
		job.Ad.SetString(roost.AttrContainerDigest, name)
		return nil
	}
	image := n.pulled[name]
	if r, err := imageref.Parse(name); err == nil && r.Source == imageref.Stored {
		named, version, err := n.namedImage(c, r)
		if err != nil {
			return err
		}
		image = named
		job.Ad.SetString(roost.AttrContainerVersion, version)
	} else if image == nil {
		if image, err = pullImage(c, name); err != nil {
			return err
		}
		n.pulled[name] = image
	}
	job.Ad.SetString(roost.AttrContainerDigest, image.Digest)
	job.Ad.SetInt(roost.AttrContainerSize, image.Size)
	if len(image.Environment) > 0 {
		job.Ad.SetStrings(roost.AttrContainerEnvironment, image.Environment)
	}
	if _, set := job.Ad.Str(roost.AttrContainerWorkdir); !set && image.Workdir != "" && image.Workdir != "/" {
		job.Ad.SetString(roost.AttrContainerWorkdir, image.Workdir)
	}
	if image.User != "" {
		job.Ad.SetString(roost.AttrContainerUser, image.User)
	}
	if use, _ := job.Ad.Bool(roost.AttrUseEntrypoint); use {
		job.Ad.SetStrings(roost.AttrContainerEntrypoint, image.Entrypoint)
	}
	return nil
}

// pullImage runs roost image pull. That is in a program of its own, because what reads
// images would delay the start of every other command.
func pullImage(c *frame.Invocation, name string) (*pulledImage, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	var args []string
	if at := c.ScheddName(); at != "" {
		args = append(args, "--schedd", at)
	}
	args = append(args, "image", "pull", "--json")
	if dir := c.StringFlag("dir"); dir != "" {
		args = append(args, "--dir", dir)
	}
	cmd := exec.CommandContext(c.Context, filepath.Join(filepath.Dir(self), frame.NodeProgram),
		append(args, name)...)
	var out, complaint bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = c.Env, &out, &complaint
	if err := cmd.Run(); err != nil {
		if text := strings.TrimPrefix(strings.TrimSpace(complaint.String()), "roost: "); text != "" {
			return nil, frame.KindErrorf(exitKind(err), "%s", text)
		}
		return nil, fmt.Errorf("roost image pull %s: %w", name, err)
	}
	var reply struct {
		Images []*pulledImage `json:"images"`
	}
	if err := json.Unmarshal(out.Bytes(), &reply); err != nil || len(reply.Images) != 1 {
		return nil, fmt.Errorf("roost image pull %s: %w: it answered %.200q", name, roost.Internal, out.String())
	}
	return reply.Images[0], nil
}

// exitKind returns the kind of the error with which a command has ended.
func exitKind(err error) roost.ErrorKind {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return roost.NoInput
	}
	for _, kind := range []roost.ErrorKind{roost.Usage, roost.Invalid, roost.NoInput, roost.NotFound,
		roost.Unavailable, roost.NoOutput, roost.Exhausted, roost.PermissionDenied} {
		if kind.ExitCode() == exit.ExitCode() {
			return kind
		}
	}
	return roost.Internal
}
