package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/anchore/go-lzo"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/erofs"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/image/squashfs"
)

// buildFileSystem builds an image of a file that has a SquashFS file system: alone, or in
// a SIF file.
func (b *builder) buildFileSystem(ctx context.Context, r imageref.Reference, out *os.File) (result Result, err error) {
	f, err := os.Open(r.Path)
	if err != nil {
		return result, fmt.Errorf("%w: %w", roost.NoInput, err)
	}
	defer f.Close()
	part, err := openSquashFS(f, r.Source)
	if err != nil {
		return result, err
	}
	source := &countingReaderAt{part, &byteCounter{}}
	files, err := squashfs.Open(source, part.Size(), decompressor)
	if err != nil {
		return result, err
	}
	root, err := files.Root()
	if err != nil {
		return result, err
	}
	w := erofs.NewWriter(out)
	c := &squashfsCopy{ctx: ctx, files: files, tree: newLayerTree(b.limits, nil), nodes: map[squashfs.Ref]*erofs.Node{},
		directories: map[squashfs.Ref]bool{}}
	settings := newApptainerFiles()
	c.tree.fresh = map[*erofs.Node]map[string]bool{}
	c.tree.writeData = func(r io.Reader, size int64) (uint32, error) {
		return w.WriteData(&expansionReader{reader: r, compressed: source.read, limits: b.limits, total: &b.contents},
			size)
	}
	if err := c.tree.setAttributes(c.tree.root, squashfsHeader(root, ".")); err != nil {
		return result, err
	}
	c.settings = settings
	if err := c.copyDirectory(c.tree.root, root, "", 0); err != nil {
		return result, err
	}
	return finishImage(c.tree, w, settings, out)
}

// finishImage completes an image that has no configuration of its own, but perhaps files
// that Apptainer reads.
func finishImage(tree *layerTree, w *erofs.Writer, settings *apptainerFiles, out *os.File) (result Result, err error) {
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
	config, notes := settings.config()
	return Result{Config: config, Size: info.Size(), Files: tree.entries,
		Notes: append(tree.dropped.notes(), notes...)}, nil
}

// openSquashFS returns the file system in a file.
func openSquashFS(f *os.File, source imageref.Source) (*io.SectionReader, error) {
	if source == imageref.SIF {
		return openSIF(f)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f, 0, info.Size()), nil
}

// countingReaderAt counts what is read.
type countingReaderAt struct {
	io.ReaderAt
	read *byteCounter
}

func (c *countingReaderAt) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(b, at)
	c.read.count += int64(n)
	return n, err
}

// squashfsCopy copies a file system into a tree.
type squashfsCopy struct {
	ctx         context.Context
	files       *squashfs.FileSystem
	tree        *layerTree
	settings    *apptainerFiles
	nodes       map[squashfs.Ref]*erofs.Node // of files with several names
	directories map[squashfs.Ref]bool        // that were copied
}

// copyDirectory copies what is in a directory. One that has two names is refused: it
// could be in itself.
func (c *squashfsCopy) copyDirectory(to *erofs.Node, from *squashfs.Inode, path string, depth int) error {
	entries, err := c.files.ReadDirectory(from)
	if err == nil && depth > c.tree.limits.Depth {
		err = fmt.Errorf("%w: it is in more than %d directories", roost.Exhausted, c.tree.limits.Depth)
	}
	if err != nil {
		return fmt.Errorf("%.300q: %w", path, err)
	}
	for _, e := range entries {
		if err := c.copyEntry(to, e, path, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *squashfsCopy) copyEntry(to *erofs.Node, e squashfs.Entry, dir string, depth int) error {
	path := dir + e.Name
	n, inode, err := c.newNode(to, e, path)
	if err != nil {
		return fmt.Errorf("%.300q: %w", path, err)
	}
	if n == nil {
		return nil
	}
	to.Children[e.Name] = n
	if inode.Type == squashfs.Directory {
		return c.copyDirectory(n, inode, path+"/", depth+1)
	}
	return nil
}

// newNode returns the node of an entry, or none for what is left out.
func (c *squashfsCopy) newNode(to *erofs.Node, e squashfs.Entry, path string) (*erofs.Node, *squashfs.Inode, error) {
	if err := errors.Join(c.ctx.Err(), c.tree.countEntry()); err != nil {
		return nil, nil, err
	}
	words, err := c.tree.splitPath(e.Name)
	if err == nil && (len(words) != 1 || words[0] != e.Name) {
		err = fmt.Errorf("%w: no file can have this name", roost.Invalid)
	}
	if err == nil && to.Children[e.Name] != nil {
		err = fmt.Errorf("%w: the name is there twice", roost.Invalid)
	}
	if err != nil {
		return nil, nil, err
	}
	inode, err := c.files.Inode(e.Ref)
	if err != nil {
		return nil, nil, err
	}
	if n := c.nodes[e.Ref]; n != nil {
		return n, inode, nil
	}
	var contents io.Reader
	switch inode.Type {
	case squashfs.Socket:
		c.tree.dropped.devices.add(path)
		return nil, nil, nil
	case squashfs.Directory:
		if c.directories[e.Ref] {
			return nil, nil, fmt.Errorf("%w: the directory has a second name", roost.Invalid)
		}
		c.directories[e.Ref] = true
	case squashfs.Regular:
		if contents, err = c.files.Contents(inode); err != nil {
			return nil, nil, err
		}
		contents = c.settings.watch(path, inode.Size, contents)
	}
	n, err := c.tree.newNode(to, e.Name, squashfsHeader(inode, path), contents)
	if err == nil && n != nil && inode.Links > 1 && inode.Type != squashfs.Directory {
		c.nodes[e.Ref] = n
	}
	return n, inode, err
}

// squashfsHeader describes an inode as an archive would, so that both are read by the
// same rules.
func squashfsHeader(n *squashfs.Inode, path string) *tar.Header {
	h := &tar.Header{Name: path, Mode: int64(n.Mode), Uid: int(n.UID), Gid: int(n.GID), Size: n.Size,
		Linkname: n.Target, ModTime: time.Unix(int64(n.Mtime), 0), PAXRecords: map[string]string{}}
	switch n.Type {
	case squashfs.Directory:
		h.Typeflag = tar.TypeDir
	case squashfs.Regular:
		h.Typeflag = tar.TypeReg
	case squashfs.Symlink:
		h.Typeflag = tar.TypeSymlink
	case squashfs.BlockDevice:
		h.Typeflag = tar.TypeBlock
	case squashfs.CharDevice:
		h.Typeflag = tar.TypeChar
	case squashfs.Pipe:
		h.Typeflag = tar.TypeFifo
	}
	for name, value := range n.Xattrs {
		h.PAXRecords[xattrRecord+name] = value
	}
	return h
}

// decompressor returns what decompresses the blocks of a file system.
func decompressor(c squashfs.Compression) (squashfs.Decompressor, error) {
	switch c {
	case squashfs.Zlib:
		return streamDecompressor(func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }), nil
	case squashfs.XZ:
		return streamDecompressor(func(r io.Reader) (io.Reader, error) {
			return xz.ReaderConfig{DictCap: 1 << 20, SingleStream: true}.NewReader(r)
		}), nil
	case squashfs.LZO:
		return wholeDecompressor(lzo.Decompress), nil
	case squashfs.LZ4:
		return wholeDecompressor(lz4.UncompressBlock), nil
	case squashfs.Zstd:
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(16<<20))
		if err != nil {
			return nil, err
		}
		return func(block, buffer []byte, limit int) ([]byte, error) {
			return z.DecodeAll(block, sized(buffer, limit)[:0])
		}, nil
	}
	return nil, fmt.Errorf("%w: its blocks are compressed by %v, which is not read: use gzip or zstd", roost.Invalid, c)
}

// sized returns memory for n bytes.
func sized(buffer []byte, n int) []byte {
	if cap(buffer) < n {
		return make([]byte, n)
	}
	return buffer[:n]
}

// wholeDecompressor uses a function that decompresses a block into memory for all of it.
func wholeDecompressor(decompress func(from, to []byte) (int, error)) squashfs.Decompressor {
	return func(block, buffer []byte, limit int) ([]byte, error) {
		buffer = sized(buffer, limit)
		n, err := decompress(block, buffer)
		return buffer[:max(n, 0)], err
	}
}

// streamDecompressor reads a block as a stream. One that can be used again is.
func streamDecompressor(open func(io.Reader) (io.Reader, error)) squashfs.Decompressor {
	var stream io.Reader
	return func(block, buffer []byte, limit int) ([]byte, error) {
		in := bytes.NewReader(block)
		again, ok := stream.(zlib.Resetter)
		var err error
		if ok {
			err = again.Reset(in, nil)
		} else {
			stream, err = open(in)
		}
		if err != nil {
			return nil, err
		}
		buffer = sized(buffer, limit)
		n, err := io.ReadFull(stream, buffer)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
			return buffer[:n], nil
		case err != nil:
			return nil, err
		}
		if extra, err := io.CopyN(io.Discard, stream, 1); extra > 0 || !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("it has more than %d bytes: %w", limit, err)
		}
		return buffer, nil
	}
}
