package rpc

import (
	"net"
)

// ByteStream is either end of a gRPC stream that carries the bytes of a connection.
type ByteStream interface {
	SendBytes(data []byte) error
	ReceiveBytes() ([]byte, error)
}

// byteStreamChunk is the most bytes of data in one message of a ByteStream.
const byteStreamChunk = 64 << 10

// CopyByteStream copies bytes between a connection and a stream until one of the ends is
// closed, or closed is. It then closes the connection and calls stop, which must make a
// blocked ReceiveBytes return. Its helpers run with spawn.
func CopyByteStream(conn net.Conn, s ByteStream, closed <-chan struct{}, stop func(), spawn func(func())) {
	ended := make(chan struct{})
	spawn(func() {
		select {
		case <-closed:
		case <-ended:
		}
		conn.Close()
		stop()
	})
	spawn(func() {
		defer conn.Close()
		for {
			data, err := s.ReceiveBytes()
			if err != nil {
				return
			}
			if _, err := conn.Write(data); err != nil {
				return
			}
		}
	})
	buffer := make([]byte, byteStreamChunk)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			break
		}
		if err := s.SendBytes(append([]byte(nil), buffer[:n]...)); err != nil {
			break
		}
	}
	close(ended)
	stop()
}
