package criu

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	core "github.com/checkpoint-restore/go-criu/v7/crit/images/criu-core"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/pstree"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/internal/attack"
)

// AttackImage changes a dump in dir as a hostile execute node with the task's key would.
// An ordinary build does nothing: see package attack.
func AttackImage(dir string) error {
	if !attack.Is(attack.ForgedUID) && !attack.Is(attack.ForgedCapabilities) {
		return nil
	}
	tree, err := readEntries(dir, "pstree.img", func() *pstree.PstreeEntry { return &pstree.PstreeEntry{} })
	if err != nil || len(tree) < 2 {
		return fmt.Errorf("%d processes: %w", len(tree), err)
	}
	for _, p := range tree[1:] { // the first is the sandbox's own
		if err := attackCore(filepath.Join(dir, image.CRIUDir, fmt.Sprintf("core-%d.img", p.GetPid()))); err != nil {
			return err
		}
	}
	return nil
}

// attackCore gives a process the rights of root.
func attackCore(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const head = 12 // two magic numbers, and the length of the only entry
	c := &core.CoreEntry{}
	if err := proto.Unmarshal(data[head:], c); err != nil {
		return err
	}
	x := c.GetThreadCore().GetCreds()
	if attack.Is(attack.ForgedUID) {
		x.Uid, x.Euid, x.Suid, x.Fsuid = proto.Uint32(0), proto.Uint32(0), proto.Uint32(0), proto.Uint32(0)
	}
	if attack.Is(attack.ForgedCapabilities) {
		for _, set := range [][]uint32{x.GetCapPrm(), x.GetCapEff(), x.GetCapBnd()} {
			for i := range set {
				set[i] = 1<<21 | 1 // CAP_SYS_ADMIN and CAP_CHOWN
			}
		}
	}
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(binary.LittleEndian.AppendUint32(data[:8:8], uint32(len(text))), text...), 0o600)
}
