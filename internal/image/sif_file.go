package image

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/roost-batch/roost"
)

// The format of SIF files, as github.com/sylabs/sif describes it: a header, a list of
// descriptors, and the objects that they describe.
const (
	sifMagic          = "SIF_MAGIC\x00"
	maxSIFDescriptors = 4096
	sifPartitionType  = 0x4004 // of a descriptor
	sifRootIndexType  = 0x400a // of an OCI-SIF
	sifSquashFS       = 1      // file systems of partitions
	sifEncrypted      = 5
	sifPrimarySystem  = 2 // the partition that is the container's root
)

// sifHeader is the header of a SIF file.
type sifHeader struct {
	Launch                                                           [32]byte
	Magic                                                            [10]byte
	Version, Arch                                                    [3]byte
	ID                                                               [16]byte
	Created, Modified                                                int64
	DescriptorsFree, Descriptors, DescriptorsOffset, DescriptorsSize int64
	DataOffset, DataSize                                             int64
}

// sifDescriptor describes an object of a SIF file.
type sifDescriptor struct {
	Type                                    int32
	Used                                    bool
	ID, Group, Linked                       uint32
	Offset, Size, PaddedSize                int64
	Created, Modified, UnusedUID, UnusedGID int64
	Name                                    [128]byte
	Extra                                   [384]byte
}

// sifPartition is what the descriptor of a partition has besides.
type sifPartition struct {
	FileSystem, Part int32
	Arch             [3]byte
}

// sifArchitectures are the machines of SIF files, by the names that Go has for them.
func sifArchitectures() map[string]string {
	return map[string]string{"01": "386", "02": "amd64", "03": "arm", "04": "arm64", "05": "ppc64", "06": "ppc64le",
		"07": "mips", "08": "mipsle", "09": "mips64", "10": "mips64le", "11": "s390x", "12": "riscv64", "13": "loong64"}
}

// openSIF returns the file system in a SIF file that is the container's root.
func openSIF(f *os.File) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var h sifHeader
	if err := binary.Read(io.NewSectionReader(f, 0, info.Size()), binary.LittleEndian, &h); err != nil {
		return nil, fmt.Errorf("%w: it is too short for a SIF file", roost.Invalid)
	}
	switch {
	case string(h.Magic[:]) != sifMagic:
		return nil, fmt.Errorf("%w: it is no SIF file", roost.Invalid)
	case h.Descriptors < 0 || h.Descriptors > maxSIFDescriptors || h.DescriptorsOffset < 0:
		return nil, fmt.Errorf("%w: its header says that it has %d objects", roost.Invalid, h.Descriptors)
	}
	list := io.NewSectionReader(f, h.DescriptorsOffset, info.Size()-h.DescriptorsOffset)
	for i := range h.Descriptors {
		var d sifDescriptor
		if err := binary.Read(list, binary.LittleEndian, &d); err != nil {
			return nil, fmt.Errorf("%w: its list of objects ends after %d of %d", roost.Invalid, i, h.Descriptors)
		}
		if !d.Used {
			continue
		}
		if d.Type == sifRootIndexType {
			return nil, fmt.Errorf("%w: it is an OCI-SIF, which is not read: build a plain one without --oci, or an "+
				"OCI layout (oci:DIRECTORY)", roost.Invalid)
		}
		if d.Type != sifPartitionType {
			continue
		}
		var p sifPartition
		if _, err := binary.Decode(d.Extra[:], binary.LittleEndian, &p); err != nil {
			return nil, err
		}
		if p.Part != sifPrimarySystem {
			continue
		}
		if err := p.check(); err != nil {
			return nil, err
		}
		if d.Offset < 0 || d.Size < 0 || d.Offset > info.Size() || d.Size > info.Size()-d.Offset {
			return nil, fmt.Errorf("%w: it ends within its file system: was it copied as a whole?", roost.Invalid)
		}
		return io.NewSectionReader(f, d.Offset, d.Size), nil
	}
	return nil, fmt.Errorf("%w: it has no file system", roost.Invalid)
}

// check refuses what cannot be a root here.
func (p sifPartition) check() error {
	text := string(bytes.TrimRight(p.Arch[:], "\x00"))
	machine := sifArchitectures()[text]
	switch {
	case p.FileSystem == sifEncrypted:
		return fmt.Errorf("%w: its file system is encrypted, and machines have no key for it", roost.Invalid)
	case p.FileSystem != sifSquashFS:
		return fmt.Errorf("%w: its file system is no SquashFS: build it again with apptainer build", roost.Invalid)
	case machine == "":
		return fmt.Errorf("%w: its programs are for machine %q, which is not known", roost.Invalid, text)
	case machine != runtime.GOARCH:
		return fmt.Errorf("%w: its programs are for linux/%s, and not for %v", roost.Invalid, machine, platform())
	}
	return nil
}
