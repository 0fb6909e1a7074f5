package rpc

import (
	"google.golang.org/grpc"
)

// Server is a gRPC server that knows a call's peer before it reads the request, also
// where there is one request and one answer: gRPC reads such a request before it asks
// anybody.
type Server struct{ *grpc.Server }

// RegisterService registers a service. Methods with one request and one answer are served
// as streams of one message each, which are the same on the wire; ServerStreams has gRPC
// call the interceptor of streams.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	streams := *desc
	streams.Methods = nil
	for _, m := range desc.Methods {
		streams.Streams = append(streams.Streams,
			grpc.StreamDesc{StreamName: m.MethodName, Handler: unaryHandler(m), ServerStreams: true})
	}
	s.Server.RegisterService(&streams, impl)
}

// unaryHandler serves a method with one request and one answer.
func unaryHandler(m grpc.MethodDesc) grpc.StreamHandler {
	return func(impl any, stream grpc.ServerStream) error {
		ctx := stream.Context()
		reply, err := m.Handler(impl, ctx, stream.RecvMsg, nil)
		if err == nil {
			err = stream.SendMsg(reply)
		}
		if c, ok := ctx.Value(callKey{}).(*activeCall); ok && err == nil {
			c.startTimer(c.sendTimeout, "its answer was not taken")
		}
		return err
	}
}
