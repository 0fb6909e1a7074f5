package image

import (
	"compress/bzip2"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	registry "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// refNameAnnotation has the tag of an image in the index of a layout.
const refNameAnnotation = "org.opencontainers.image.ref.name"

// platform is what the programs of an image must be made for.
func platform() registry.Platform {
	return registry.Platform{OS: "linux", Architecture: runtime.GOARCH}
}

// openImage opens an image that is on the disk.
func openImage(r imageref.Reference) (registry.Image, error) {
	var m registry.Image
	_, err := os.Stat(r.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", roost.NoInput, err)
	}
	switch r.Source {
	case imageref.Archive:
		m, err = tarball.ImageFromPath(r.Path, nil)
	case imageref.Layout:
		var index registry.ImageIndex
		if index, err = layout.ImageIndexFromPath(r.Path); err == nil {
			m, err = selectImage(index, r.Tag, 0)
		}
	default:
		return nil, fmt.Errorf("%w: it is not on the disk", roost.Internal)
	}
	if err != nil && !errors.As(err, new(roost.ErrorKind)) {
		err = fmt.Errorf("%w: %w", roost.NoInput, err)
	}
	return m, err
}

// maxIndexes is how deep indexes may be in indexes.
const maxIndexes = 4

// selectImage returns the image of an index that has the tag, for this machine.
func selectImage(index registry.ImageIndex, tag string, depth int) (registry.Image, error) {
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var fitting []registry.Descriptor
	var tags, platforms []string
	for _, d := range list.Manifests {
		if name := d.Annotations[refNameAnnotation]; depth == 0 {
			tags = append(tags, fmt.Sprintf("%q", name))
			if tag != "" && name != tag {
				continue
			}
		}
		if d.Platform != nil && !d.Platform.Satisfies(platform()) {
			platforms = append(platforms, d.Platform.String())
			continue
		}
		if d.MediaType.IsImage() || d.MediaType.IsIndex() {
			fitting = append(fitting, d)
		}
	}
	switch {
	case len(fitting) == 0 && len(platforms) > 0:
		return nil, fmt.Errorf("%w: it is for %v, and not for %v", roost.Invalid, platforms, platform())
	case len(fitting) == 0:
		return nil, fmt.Errorf("%w: it has no image %q, but %v", roost.NotFound, tag, tags)
	case len(fitting) > 1 && depth == 0:
		return nil, fmt.Errorf("%w: it has several images: write one of the tags %v behind a colon", roost.Invalid,
			tags)
	case depth >= maxIndexes:
		return nil, fmt.Errorf("%w: an index is in %d others", roost.Invalid, depth)
	}
	if d := fitting[0]; d.MediaType.IsImage() {
		m, err := index.Image(d.Digest)
		if err != nil {
			return nil, err
		}
		raw, err := m.RawManifest()
		if err == nil {
			err = checkDigest("the manifest", raw, d.Digest)
		}
		return m, err
	}
	inner, err := index.ImageIndex(fitting[0].Digest)
	if err != nil {
		return nil, err
	}
	raw, err := inner.RawManifest()
	if err == nil {
		err = checkDigest("index", raw, fitting[0].Digest)
	}
	if err != nil {
		return nil, err
	}
	return selectImage(inner, "", depth+1)
}

// checkDigest compares bytes with their digest.
func checkDigest(what string, data []byte, want registry.Hash) error {
	sum := sha256.Sum256(data)
	if want.Algorithm != "sha256" || hex.EncodeToString(sum[:]) != want.Hex {
		return fmt.Errorf("%s: %w: its bytes are not those of its digest %s", what, roost.Invalid, want)
	}
	return nil
}

// layerReader opens a layer. When all of it was read, check compares it with the digests
// of the image.
func (b *builder) layerReader(l registry.Layer, diff registry.Hash, archive bool) (stream io.ReadCloser,
	contents *expansionReader, check func() error, err error) {
	raw, err := openLayer(l, archive)
	if err != nil {
		return nil, nil, nil, err
	}
	stored, plain := sha256.New(), sha256.New()
	compressed := &byteCounter{reader: io.TeeReader(raw, stored)}
	if archive {
		compressed.reader = raw
	}
	opened, err := decompress(l, archive, compressed)
	if err != nil {
		raw.Close()
		return nil, nil, nil, err
	}
	contents = &expansionReader{reader: io.TeeReader(opened, plain), compressed: compressed, limits: b.limits,
		total: &b.total}
	return raw, contents, func() error {
		if _, err := io.Copy(io.Discard, contents); err != nil { // what follows the end of the archive
			return err
		}
		if _, err := io.Copy(io.Discard, compressed); err != nil {
			return err
		}
		return compareDigests(l, diff, archive, stored.Sum(nil), plain.Sum(nil))
	}, nil
}

func openLayer(l registry.Layer, archive bool) (io.ReadCloser, error) {
	if archive { // its layers are not compressed, and have no other digest
		return l.Uncompressed()
	}
	return l.Compressed()
}

// decompress returns the tar archive in a layer.
func decompress(l registry.Layer, archive bool, r io.Reader) (io.Reader, error) {
	if archive {
		return r, nil
	}
	kind, err := l.MediaType()
	if err != nil {
		return nil, err
	}
	switch kind {
	case types.OCILayer, types.DockerLayer, types.OCIRestrictedLayer:
		return gzip.NewReader(r)
	case types.OCILayerZStd:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case types.OCIUncompressedLayer, types.DockerUncompressedLayer, types.OCIUncompressedRestrictedLayer:
		return r, nil
	case "application/vnd.oci.image.layer.v1.tar+bzip2":
		return bzip2.NewReader(r), nil
	}
	return nil, fmt.Errorf("%w: a layer has the type %q, which cannot be read", roost.Invalid, kind)
}

// compareDigests compares what was read of a layer with what the image says. diff is of
// the layer's contents, from the configuration: the library would compute its own.
func compareDigests(l registry.Layer, diff registry.Hash, archive bool, stored, plain []byte) error {
	if diff.Algorithm != "sha256" || diff.Hex != hex.EncodeToString(plain) {
		return fmt.Errorf("%w: the layer's contents are not those of its digest %s", roost.Invalid, diff)
	}
	if archive {
		return nil
	}
	digest, err := l.Digest()
	if err == nil && digest.Hex != hex.EncodeToString(stored) {
		err = fmt.Errorf("%w: the layer's bytes are not those of its digest %s", roost.Invalid, digest)
	}
	return err
}

// contextReader ends when a context does.
type contextReader struct {
	context context.Context
	reader  io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.context.Err(); err != nil {
		return 0, err
	}
	return c.reader.Read(b)
}
