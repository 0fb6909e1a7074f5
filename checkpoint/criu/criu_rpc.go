package criu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/checkpoint-restore/go-criu/v7/rpc"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
)

// The stages of a restore at which CRIU waits for an answer.
const (
	processesCreated = "post-restore" // the processes are stopped and still have root's rights
	rightsAssumed    = "pre-resume"   // the processes are stopped and have their final rights
)

// maxReply bounds a message of CRIU, in bytes.
const maxReply = 16 << 10

// restoreByRPC runs a restore and calls at for each stage. The library does not report
// the last stage, before which the rights of a process are not final. If at returns an
// error at the first of these stages, CRIU ends; at the second it continues in any case.
func restoreByRPC(path string, opts *rpc.CriuOpts, at func(stage string, pid int) error) (err error) {
	fds, err := unix.Socketpair(unix.AF_LOCAL, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	own, theirs := os.NewFile(uintptr(fds[0]), "criu"), os.NewFile(uintptr(fds[1]), "criu")
	c := exec.Command(path, "swrk", "3")
	c.ExtraFiles = []*os.File{theirs}
	err = c.Start()
	theirs.Close()
	if err != nil {
		own.Close()
		return err
	}
	defer func() {
		own.Close()
		if werr := c.Wait(); err == nil && werr != nil {
			err = fmt.Errorf("criu: %w", werr)
		}
	}()
	opts.NotifyScripts = proto.Bool(true)
	req := &rpc.CriuReq{Type: rpc.CriuReqType_RESTORE.Enum(), Opts: opts}
	for {
		text, err := proto.Marshal(req)
		if err == nil {
			_, err = own.Write(text)
		}
		if err != nil {
			return err
		}
		buf := make([]byte, maxReply)
		n, err := own.Read(buf)
		if err != nil {
			return err
		}
		resp := &rpc.CriuResp{}
		if err := proto.Unmarshal(buf[:n], resp); err != nil {
			return err
		}
		switch {
		case !resp.GetSuccess():
			return fmt.Errorf("operation failed (msg:%s err:%d)", resp.GetCrErrmsg(), resp.GetCrErrno())
		case resp.GetType() == rpc.CriuReqType_RESTORE:
			return nil
		case resp.GetType() != rpc.CriuReqType_NOTIFY:
			return errors.New("an unexpected answer of CRIU's")
		}
		good := at(resp.GetNotify().GetScript(), int(resp.GetNotify().GetPid())) == nil
		req = &rpc.CriuReq{Type: rpc.CriuReqType_NOTIFY.Enum(), NotifySuccess: proto.Bool(good)}
	}
}
