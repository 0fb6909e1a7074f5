// Command ociimage writes a directory tree as a container image of one layer, as an OCI
// image layout (a directory). It needs no daemon and no rights.
//
// All files belong to root and have the given time, so the same tree gives the same
// digests. Directories and files keep their permissions; links stay links.
package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.arch, "arch", "amd64", "processor of the programs, as Go names it")
	flag.StringVar(&o.tag, "tag", "latest", "tag of the image in the layout")
	flag.StringVar(&o.config, "config", "", "`FILE` with the section config of the image, as JSON")
	epoch := flag.Int64("epoch", 0, "time of the image and of its files, in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: ociimage [options] TREE LAYOUT")
		os.Exit(64)
	}
	o.tree, o.layout, o.time = flag.Arg(0), flag.Arg(1), time.Unix(*epoch, 0).UTC()
	digest, err := o.write()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ociimage:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

// options says what becomes an image, and where.
type options struct {
	tree, layout      string
	arch, tag, config string
	time              time.Time
}

// Media types of the OCI image specification 1.0.
const (
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
	configType   = "application/vnd.oci.image.config.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

// descriptor names a blob of the layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// write writes the layout anew and returns the digest of the manifest.
func (o *options) write() (digest string, err error) {
	settings := json.RawMessage("{}")
	if o.config != "" {
		if settings, err = os.ReadFile(o.config); err != nil {
			return "", err
		}
	}
	if err := os.RemoveAll(o.layout); err != nil {
		return "", err
	}
	if err := os.MkdirAll(o.blobs(), 0o755); err != nil {
		return "", err
	}
	layer, content, err := o.writeLayer()
	if err != nil {
		return "", err
	}
	config, err := o.writeJSON(configType, map[string]any{
		"architecture": o.arch, "os": "linux", "created": o.time, "config": settings,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{content}},
		"history": []any{map[string]any{"created": o.time, "created_by": "make image"}},
	})
	if err != nil {
		return "", err
	}
	manifest, err := o.writeJSON(manifestType, map[string]any{
		"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{layer},
	})
	if err != nil {
		return "", err
	}
	manifest.Platform = map[string]string{"architecture": o.arch, "os": "linux"}
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": o.tag}
	index, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{manifest},
	})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(o.layout, "index.json"), index, 0o644); err != nil {
		return "", err
	}
	version := []byte(`{"imageLayoutVersion":"1.0.0"}`)
	return manifest.Digest, os.WriteFile(filepath.Join(o.layout, "oci-layout"), version, 0o644)
}

func (o *options) blobs() string { return filepath.Join(o.layout, "blobs", "sha256") }

func (o *options) writeJSON(mediaType string, v any) (descriptor, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return descriptor{}, err
	}
	sum := sha256.Sum256(text)
	name := hex.EncodeToString(sum[:])
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + name, Size: int64(len(text))}
	return d, os.WriteFile(filepath.Join(o.blobs(), name), text, 0o644)
}

// writeLayer writes the tree as a compressed archive. It also returns the digest of the
// archive before its compression.
func (o *options) writeLayer() (layer descriptor, content string, err error) {
	f, err := os.CreateTemp(o.blobs(), "layer")
	if err != nil {
		return layer, "", err
	}
	defer f.Close()
	packed := &digestWriter{to: f, sum: sha256.New()}
	zip, err := gzip.NewWriterLevel(packed, gzip.BestCompression)
	if err != nil {
		return layer, "", err
	}
	plain := &digestWriter{to: zip, sum: sha256.New()}
	if err := o.writeTar(plain); err != nil {
		return layer, "", err
	}
	if err := zip.Close(); err != nil {
		return layer, "", err
	}
	if err := f.Chmod(0o644); err != nil {
		return layer, "", err
	}
	layer = descriptor{MediaType: layerType, Digest: packed.digest(), Size: packed.size}
	err = os.Rename(f.Name(), filepath.Join(o.blobs(), strings.TrimPrefix(layer.Digest, "sha256:")))
	return layer, plain.digest(), err
}

// writeTar writes the tree in the order of its paths.
func (o *options) writeTar(w io.Writer) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(o.tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == o.tree {
			return err
		}
		return o.writeEntry(t, path, d)
	})
	if err != nil {
		return err
	}
	return t.Close()
}

func (o *options) writeEntry(t *tar.Writer, path string, d fs.DirEntry) (err error) {
	name, err := filepath.Rel(o.tree, path)
	if err != nil {
		return err
	}
	info, err := d.Info()
	if err != nil {
		return err
	}
	target := ""
	if d.Type() == fs.ModeSymlink {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	found, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if d.IsDir() {
		name += "/"
	}
	// nothing of who built it, and when
	header := &tar.Header{Typeflag: found.Typeflag, Name: name, Linkname: target, Size: found.Size,
		Mode: found.Mode, ModTime: o.time, Format: tar.FormatPAX}
	if err := t.WriteHeader(header); err != nil || !d.Type().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(t, f)
	return err
}

// digestWriter counts and sums up what it passes on.
type digestWriter struct {
	to   io.Writer
	sum  hash.Hash
	size int64
}

func (w *digestWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.sum.Write(b[:n])
	w.size += int64(n)
	return n, err
}

func (w *digestWriter) digest() string { return "sha256:" + hex.EncodeToString(w.sum.Sum(nil)) }
