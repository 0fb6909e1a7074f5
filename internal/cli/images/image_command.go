package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/image"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/store/transfer"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// ImageCommand returns roost image: container images for your tasks.
func ImageCommand() *frame.Command {
	return &frame.Command{
		Name: "image", Group: frame.GroupChange, Summary: "container images for your tasks",
		Synopsis: "[list | pull IMAGE… | inspect IMAGE… | rm DIGEST…]", Run: runImageVerb, MaxOperands: -1,
		Description: "Puts container images into the store of the pool, from where the machines get them. pull " +
			"builds an image into the file system that tasks see, and sends what the store lacks of it; roost submit " +
			"does the same for the image that a job names. inspect says what an image is, and sends nothing. list " +
			"lists yours, and rm removes them from your charge: what no user has any more is removed. An image is " +
			"docker://HOST/NAME:TAG, oci:DIRECTORY:TAG, docker-archive:FILE, FILE.sif of Apptainer, FILE.sqsh of " +
			"enroot, or dir:DIRECTORY, the root of a system.",
		Examples: []frame.Example{
			{Line: "roost image pull oci:build/r-base:4.4", Description: "from an OCI layout, as buildah makes it"},
			{Line: "roost image inspect analysis.sif", Description: "its digest and environment"},
			{Line: "roost image pull --name r-base@4.4 oci:build/r-base",
				Description: "jobs say image = \"r-base@4.4\" from then on"},
			{Line: "roost image list", Description: "those that you are charged for"},
		},
		Flags: []ucli.Flag{frame.JSONFlag(),
			&ucli.StringFlag{Name: "name", Usage: "pull: name the image `NAME@VERSION` in the pool"}},
	}
}

// imageVerbs lists what can be done with images.
func imageVerbs() map[string]func(c *frame.Invocation) error {
	return map[string]func(c *frame.Invocation) error{
		"list": listImages, "rm": removeImages,
		"pull":    func(c *frame.Invocation) error { return buildImages(c, true) },
		"inspect": func(c *frame.Invocation) error { return buildImages(c, false) },
	}
}

func runImageVerb(c *frame.Invocation) error {
	verb := "list"
	if len(c.Args) > 0 {
		verb, c.Args = c.Args[0], c.Args[1:]
	}
	run := imageVerbs()[verb]
	switch {
	case run == nil:
		names := []string{"list", "pull", "inspect", "rm"}
		err := frame.UsageErrorf("there is no %q", verb)
		if n := suggest.Nearest(verb, names); n != "" {
			return frame.WithHint(err, "did you mean: roost image "+n)
		}
		return frame.WithHint(err, "use one of: "+strings.Join(names, ", "))
	case verb == "list" && len(c.Args) > 0:
		return frame.UsageErrorf("list takes no operands")
	case verb != "list" && len(c.Args) == 0:
		return frame.UsageErrorf("%s needs an image", verb)
	}
	return run(c)
}

// buildImages builds images and, if they are to be kept, sends them to the pool.
func buildImages(c *frame.Invocation, send bool) error {
	var documents []frame.JSONDocument
	name := c.StringFlag("name")
	r, err := versionReference(name)
	switch {
	case name == "":
	case !send || len(c.Args) != 1:
		return frame.UsageErrorf("--name is for roost image pull, with one image")
	case err != nil:
		return err
	}
	for _, text := range c.Args {
		b, err := buildImage(c, text, send)
		if err == nil && name != "" {
			err = b.setName(c, r)
		}
		if err != nil {
			return err
		}
		if c.WantsJSON() {
			documents = append(documents, b.document())
			continue
		}
		b.print(c)
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"images": documents})
	}
	return nil
}

// builtImage is an image that was built.
type builtImage struct {
	name   string
	digest store.Digest
	result image.Result
}

// buildImage builds an image in a directory of its own, beside the user's caches: it may
// be larger than /tmp.
func buildImage(c *frame.Invocation, text string, send bool) (built builtImage, err error) {
	r, err := imageref.Parse(text)
	if err != nil {
		return built, err
	}
	if r.Source == imageref.Stored {
		return built, frame.WithHint(frame.UsageErrorf("%q is no image to build", text),
			"name one of a registry (docker://), a layout (oci:), an archive (docker-archive:), a file (.sif, .sqsh) "+
				"or a directory (dir:)")
	}
	if r.Path != "" {
		r.Path = c.AbsolutePath(r.Path)
	}
	return runBuilder(c, text, send, func(b image.Builder, file *os.File) (image.Result, error) {
		return b.Build(c.Context, r, file)
	})
}

// runBuilder runs the builder, and sends what it has built to the pool if it is to be
// kept.
func runBuilder(c *frame.Invocation, name string, send bool,
	build func(b image.Builder, file *os.File) (image.Result, error)) (built builtImage, err error) {
	dir, err := workingDir(c)
	if err != nil {
		return built, err
	}
	defer os.RemoveAll(dir)
	blobs, err := store.OpenDirectory(filepath.Join(dir, "store"), store.Options{})
	if err != nil {
		return built, err
	}
	defer blobs.Close()
	file, err := blobs.NewFile()
	if err != nil {
		return built, err
	}
	defer file.Close()
	builder := image.Builder{Program: "/proc/self/exe", Args: []string{builderName}, TempDir: dir,
		Limits: image.DefaultLimits()}
	if built.result, err = build(builder, file); err != nil {
		return built, err
	}
	manifest, err := blobs.AddFile(c.Context, file, "")
	if err != nil {
		return built, err
	}
	built.name, built.digest = name, manifest.Digest()
	if send {
		err = sendImage(c, blobs, built.digest)
	}
	return built, err
}

// setName gives an image that the pool has a name, with what submissions must know of it.
func (b *builtImage) setName(c *frame.Invocation, r imageref.Reference) error {
	config := b.result.Config
	_, err := changePackage(c, &scheddapi.PackageChange{Name: r.Name, Version: r.Label, Digest: string(b.digest),
		Image: &scheddapi.ImageSettings{Environment: config.Env, Entrypoint: config.Entrypoint,
			Command: config.Command, Workdir: config.Workdir, User: config.User}})
	return err
}

// workingDir makes a directory for what is only needed while an image is built.
func workingDir(c *frame.Invocation) (string, error) {
	caches := c.Getenv("XDG_CACHE_HOME")
	if home := c.Getenv("HOME"); caches == "" && home != "" {
		caches = filepath.Join(home, ".cache")
	}
	parent := ""
	if caches != "" {
		parent = filepath.Join(caches, "roost")
		if err := os.MkdirAll(parent, 0o700); err != nil {
			parent = "" // the user may have no home
		}
	}
	dir, err := os.MkdirTemp(parent, "image-*")
	if err != nil {
		return "", frame.KindErrorf(roost.NoOutput, "no room to build an image: %v", err)
	}
	return dir, nil
}

// sendImage puts an image into the store of the pool.
func sendImage(c *frame.Invocation, blobs *store.Directory, digest store.Digest) error {
	s, err := c.ConnectSchedd()
	if err != nil {
		return err
	}
	b, err := blobs.OpenBlob(digest)
	if err != nil {
		return err
	}
	defer b.Close()
	progress := progressLine(c, "sending")
	defer progress(0, 0)
	return c.Retry(frame.SubmitTimeout, func(ctx context.Context, alive func()) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := s.PutBlob(ctx)
		if err != nil {
			return err
		}
		return transfer.Push(stream, b, 0, func(have, size int64) {
			alive()
			progress(have, size)
		})
	})
}

// progressLine shows on a terminal how much is done. A size of 0 ends it.
func progressLine(c *frame.Invocation, verb string) func(have, size int64) {
	shown := time.Time{}
	return func(have, size int64) {
		switch {
		case !c.ErrScreen.Terminal:
		case size == 0 && !shown.IsZero():
			fmt.Fprint(c.Stderr, "\r\033[K")
		case size > 0 && time.Since(shown) > progressInterval:
			shown = time.Now()
			fmt.Fprintf(c.Stderr, "\r\033[K%s: %v of %v", verb, roost.Bytes(have), roost.Bytes(size))
		}
	}
}

const progressInterval = 200 * time.Millisecond

func (b *builtImage) document() frame.JSONDocument {
	config := b.result.Config
	return frame.JSONDocument{"image": b.name, "digest": string(b.digest), "size": b.result.Size,
		"files": b.result.Files, "source": b.result.Source, "environment": list(config.Env),
		"entrypoint": list(config.Entrypoint), "command": list(config.Command), "workdir": config.Workdir,
		"user": config.User, "notes": list(b.result.Notes)}
}

// list returns a list for JSON, where an empty one is [] and not null.
func list(texts []string) []string { return append([]string{}, texts...) }

func (b *builtImage) print(c *frame.Invocation) {
	config := b.result.Config
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(c.Stdout, "  %-12s%s\n", name, value)
		}
	}
	fmt.Fprintf(c.Stdout, "%s\n\n", b.name)
	row("digest", string(b.digest))
	row("size", fmt.Sprintf("%v, %d files", roost.Bytes(b.result.Size), b.result.Files))
	row("entrypoint", strings.Join(config.Entrypoint, " "))
	row("command", strings.Join(config.Command, " "))
	row("workdir", config.Workdir)
	row("user", config.User)
	for _, v := range config.Env {
		row("environment", v)
	}
	for _, n := range b.result.Notes {
		row("note", n)
	}
}

func listImages(c *frame.Invocation) error {
	var reply *scheddapi.BlobList
	if err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		reply, err = s.ListBlobs(ctx, &scheddapi.BlobRequest{})
		return err
	}); err != nil {
		return err
	}
	if c.WantsJSON() {
		all := []frame.JSONDocument{}
		for _, b := range reply.GetBlobs() {
			all = append(all, frame.JSONDocument{"digest": b.GetDigest(), "size": b.GetSize(),
				"used": time.Unix(b.GetUsedS(), 0).UTC().Format(time.RFC3339)})
		}
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"images": all})
	}
	if len(reply.GetBlobs()) == 0 {
		fmt.Fprintln(c.Stdout, "no images; roost image pull IMAGE puts one into the pool")
		return nil
	}
	table := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DIGEST\tSIZE\tUSED")
	for _, b := range reply.GetBlobs() {
		fmt.Fprintf(table, "%s\t%v\t%s\n", b.GetDigest(), roost.Bytes(b.GetSize()),
			time.Unix(b.GetUsedS(), 0).Format(time.DateTime))
	}
	return table.Flush()
}

func removeImages(c *frame.Invocation) error {
	for _, digest := range c.Args {
		if !imageref.ValidDigest(digest) {
			return frame.KindErrorf(roost.Usage, "image rm: %q is no digest; roost image list shows them", digest)
		}
	}
	for _, digest := range c.Args {
		if err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
			_, err := s.RemoveBlob(ctx, &scheddapi.BlobRequest{Digest: digest})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
