package userfiles

import (
	"archive/tar"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// A file with holes is packed as its data alone, with two records in its header: where
// each piece belongs, and how long the file is. The tar package cannot write GNU's sparse
// files.
const (
	holesRecord = "ROOST.data" // "offset:size,offset:size"
	sizeRecord  = "ROOST.size"
	maxSegments = 4096
)

// dataSegment is a piece of a file with data.
type dataSegment struct{ offset, size int64 }

// segments finds the data of a file. A file with too many pieces counts as all data.
func segments(f *os.File, info fs.FileInfo) []dataSegment {
	size := info.Size()
	whole := []dataSegment{{0, size}}
	if info.Sys().(*syscall.Stat_t).Blocks*512 >= size {
		return whole
	}
	var found []dataSegment
	for at := int64(0); at < size; {
		start, err := f.Seek(at, unix.SEEK_DATA)
		if err != nil { // ENXIO: a hole up to the end
			break
		}
		end, err := f.Seek(start, unix.SEEK_HOLE)
		if err != nil || len(found) == maxSegments {
			return whole
		}
		end = min(end, size)
		if start < end {
			found = append(found, dataSegment{start, end - start})
		}
		at = max(end, start+1)
	}
	return found
}

func describeHoles(h *tar.Header, parts []dataSegment, size int64) {
	if h.Size == size {
		return
	}
	var text strings.Builder
	for i, s := range parts {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "%d:%d", s.offset, s.size)
	}
	h.PAXRecords = map[string]string{sizeRecord: strconv.FormatInt(size, 10)}
	if text.Len() > 0 { // an empty value would delete the record
		h.PAXRecords[holesRecord] = text.String()
	}
}

// parseHoles is the inverse: it returns where the data of an entry belong, and how long
// its file is.
func parseHoles(h *tar.Header) (parts []dataSegment, size int64, err error) {
	text, ok := h.PAXRecords[sizeRecord]
	if !ok {
		return []dataSegment{{0, h.Size}}, h.Size, nil
	}
	wrong := fmt.Errorf("%q: %w: its holes are not described well", h.Name, roost.Invalid)
	if size, err = strconv.ParseInt(text, 10, 64); err != nil || size < 0 {
		return nil, 0, wrong
	}
	left, from := h.Size, int64(0)
	if list := h.PAXRecords[holesRecord]; list != "" {
		for piece := range strings.SplitSeq(list, ",") {
			var s dataSegment
			offset, length, _ := strings.Cut(piece, ":")
			s.offset, err = strconv.ParseInt(offset, 10, 64)
			if err == nil {
				s.size, err = strconv.ParseInt(length, 10, 64)
			}
			if err != nil || s.offset < from || s.size < 0 || s.size > left || s.offset > size-s.size {
				return nil, 0, wrong
			}
			left, from = left-s.size, s.offset+s.size
			parts = append(parts, s)
		}
	}
	if left != 0 {
		return nil, 0, wrong
	}
	return parts, size, nil
}
