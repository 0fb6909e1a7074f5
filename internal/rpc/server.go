package rpc

import (
	"google.golang.org/grpc"
)

// Server is a gRPC server that identifies the peer of every call before it reads the
// request. gRPC itself reads the request of a unary call before it runs any interceptor.
type Server struct{ *grpc.Server }

// RegisterService registers a service. Unary methods are served as streams of one message
// each, which are the same on the wire; ServerStreams makes gRPC call the interceptor of
// streams.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	streams := *desc
	streams.Methods = nil
	for _, m := range desc.Methods {
		streams.Streams = append(streams.Streams,
			grpc.StreamDesc{StreamName: m.MethodName, Handler: unaryHandler(m), ServerStreams: true})
	}
	s.Server.RegisterService(&streams, impl)
}

// unaryHandler serves a unary method as a stream.
func unaryHandler(m grpc.MethodDesc) grpc.StreamHandler {
	return func(impl any, stream grpc.ServerStream) error {
		ctx := stream.Context()
		reply, err := m.Handler(impl, ctx, stream.RecvMsg, nil)
		if err == nil {
			err = stream.SendMsg(reply)
		}
		if c, ok := ctx.Value(callKey{}).(*activeCall); ok && err == nil {
			c.startTimer(c.sendTimeout, "it did not read its answer")
		}
		return err
	}
}
