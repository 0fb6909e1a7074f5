package image

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	registry "github.com/google/go-containerregistry/pkg/v1"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/erofs"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// Config is what an image says of the programs that run in it.
type Config struct {
	Env        []string `json:"env,omitempty"` // NAME=value
	Entrypoint []string `json:"entrypoint,omitempty"`
	Command    []string `json:"command,omitempty"`
	Workdir    string   `json:"workdir,omitempty"`
	User       string   `json:"user,omitempty"`
}

// Result is what was built.
type Result struct {
	Config Config   `json:"config"`
	Source string   `json:"source"` // digest of the image's manifest
	Size   int64    `json:"size"`   // bytes of the file
	Files  int      `json:"files"`
	Notes  []string `json:"notes,omitempty"` // what the file has not, in sentences
}

// builder builds one image.
type builder struct {
	limits Limits
	// of all layers so far: uncompressed bytes, and those of files
	total, contents int64
}

// build reads an image that is on the disk, and writes its file system to an empty file.
func build(ctx context.Context, r imageref.Reference, out *os.File, limits Limits) (Result, error) {
	b := &builder{limits: limits}
	var result Result
	var err error
	switch r.Source {
	case imageref.SIF, imageref.SquashFS:
		result, err = b.buildFileSystem(ctx, r, out)
	case imageref.Dir:
		result, err = buildTree(ctx, r.Path, out, limits)
	default:
		var m registry.Image
		if m, err = openImage(r); err == nil {
			result, err = b.run(ctx, m, r.Source == imageref.Archive, out)
		}
	}
	if err != nil {
		return Result{}, fmt.Errorf("image %s: %w", r, err)
	}
	return result, nil
}

func (b *builder) run(ctx context.Context, m registry.Image, archive bool, out *os.File) (result Result, err error) {
	config, diffs, digest, err := readConfig(m, archive)
	if err != nil {
		return result, err
	}
	layers, err := m.Layers()
	if err != nil {
		return result, fmt.Errorf("%w: %w", roost.Invalid, err)
	}
	if len(layers) > b.limits.Layers {
		return result, fmt.Errorf("%w: it has %d layers, and %d is the most", roost.Exhausted, len(layers),
			b.limits.Layers)
	}
	if len(layers) != len(diffs) {
		return result, fmt.Errorf("%w: it has %d layers, and digests of %d", roost.Invalid, len(layers), len(diffs))
	}
	w := erofs.NewWriter(out)
	tree := newLayerTree(b.limits, w.WriteData)
	for i, l := range layers {
		if err := b.applyLayer(ctx, w, tree, l, diffs[i], archive); err != nil {
			return result, fmt.Errorf("layer %d of %d: %w", i+1, len(layers), err)
		}
	}
	if err := tree.addMountPoints(); err != nil {
		return result, err
	}
	tree.noteCases("", tree.root)
	if err := w.Finish(tree.root); err != nil {
		return result, err
	}
	info, err := out.Stat()
	if err != nil {
		return result, err
	}
	return Result{config, digest, info.Size(), tree.entries, tree.dropped.notes()}, nil
}

// layerBuffer is the bytes of a layer that are read at once.
const layerBuffer = 256 << 10

// applyLayer adds one layer, and compares it with its digests.
func (b *builder) applyLayer(ctx context.Context, w *erofs.Writer, tree *layerTree, l registry.Layer,
	diff registry.Hash, archive bool) error {
	stream, contents, check, err := b.layerReader(l, diff, archive)
	if err != nil {
		return err
	}
	defer stream.Close()
	buffered := bufio.NewReaderSize(contextReader{ctx, contents}, layerBuffer)
	// A sparse file is longer than its archive: its contents count, too.
	tree.writeData = func(r io.Reader, size int64) (uint32, error) {
		return w.WriteData(&expansionReader{reader: r, compressed: contents.compressed, limits: b.limits,
			total: &b.contents}, size)
	}
	if err := tree.apply(ctx, buffered); err != nil {
		return err
	}
	return check()
}

// readConfig returns the configuration of an image, the digests of its layers' contents,
// and that of its manifest. The configuration is compared with its own.
func readConfig(m registry.Image, archive bool) (c Config, diffs []registry.Hash, digest string, err error) {
	file, err := m.ConfigFile()
	if err != nil {
		return c, nil, "", fmt.Errorf("its configuration: %w: %w", roost.Invalid, err)
	}
	if !archive {
		if err := checkManifest(m); err != nil {
			return c, nil, "", err
		}
		hash, err := m.Digest()
		if err != nil {
			return c, nil, "", err
		}
		digest = hash.String()
	}
	if file.OS != "" && file.OS != "linux" || file.Architecture != "" && file.Architecture != platform().Architecture {
		return c, nil, "", fmt.Errorf("%w: its programs are for %s/%s, and not for %v", roost.Invalid, file.OS,
			file.Architecture, platform())
	}
	return Config{file.Config.Env, file.Config.Entrypoint, file.Config.Cmd, file.Config.WorkingDir, file.Config.User},
		file.RootFS.DiffIDs, digest, nil
}

// checkManifest compares the manifest and the configuration with their digests.
func checkManifest(m registry.Image) error {
	raw, err := m.RawConfigFile()
	if err != nil {
		return err
	}
	manifest, err := m.Manifest()
	if err != nil {
		return err
	}
	return checkDigest("the configuration", raw, manifest.Config.Digest)
}
