package api

import (
	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
)

// KeepScript takes a script in. When it returns, the script is on disk.
func (s *Service) KeepScript(stream grpc.ClientStreamingServer[wire.ScriptChunk, wire.ScriptReply]) error {
	who, err := s.callerOf(stream.Context())
	if err != nil {
		return err
	}
	if err := s.checkUser(who); err != nil {
		return err
	}
	if err := s.reserve.RefusalReason(); err != nil {
		return err
	}
	name, err := s.transfers.Scripts.Store(who.UID, func() ([]byte, error) {
		chunk, err := stream.Recv()
		return chunk.GetData(), err
	})
	if err != nil {
		return err
	}
	return stream.SendAndClose(&wire.ScriptReply{Name: name})
}
