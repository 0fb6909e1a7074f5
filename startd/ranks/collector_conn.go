package ranks

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost/internal/pmi"
)

// SocketName is the name of the socket in the directory of an attempt's streams. By it
// the ranks of the attempt exchange keys with the others of the gang.
const SocketName = "ranks"

// redialDelay is how long it waits before it connects again.
const redialDelay = 200 * time.Millisecond

// dialCollector connects to the startd again and again, and reports what comes.
func (t *taskRanks) dialCollector() {
	for {
		conn, err := dialSocket(t.Socket)
		if err == nil {
			t.events <- collectorConnected{conn}
			err = t.readCollector(conn)
			conn.Close()
			t.events <- collectorLost{conn, err}
		}
		time.Sleep(redialDelay)
	}
}

// readCollector reports messages until the connection ends.
func (t *taskRanks) readCollector(conn net.Conn) error {
	in := bufio.NewReader(conn)
	var joiner pmi.MessageJoiner
	for {
		m, err := ReadMessage(in)
		if err != nil {
			return err
		}
		whole, complete, tooLong := joiner.Join(m, pmi.MaxGangKeys)
		if tooLong {
			return errors.New("the keys of the gang are too long")
		}
		if complete {
			t.events <- collectorMessage{whole}
		}
	}
}

// ReadMessage reads a message, with its length before it.
func ReadMessage(in io.Reader) (m pmi.Message, err error) {
	body, err := ReadFrame(in)
	if err != nil {
		return m, err
	}
	m, ok := pmi.DecodeMessage(body)
	if !ok {
		return m, errors.New("that is no message of ranks")
	}
	return m, nil
}

// ReadFrame reads an encoded message, with its length before it.
func ReadFrame(in io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > pmi.MaxMessage {
		return nil, fmt.Errorf("a message of %d bytes is too long", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(in, body)
	return body, err
}

// AppendFrame appends an encoded message and its length.
func AppendFrame(b, body []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(body))), body...)
}

// sendTimeout bounds how long a message to the collector or a reply to a rank may take.
const sendTimeout = 10 * time.Second

// writeMessage writes a message in as many parts as it needs.
func writeMessage(conn net.Conn, m pmi.Message) error {
	for _, part := range m.Split() {
		_ = conn.SetWriteDeadline(time.Now().Add(sendTimeout))
		if _, err := conn.Write(AppendFrame(nil, part.Append(nil))); err != nil {
			return err
		}
	}
	return nil
}

// dialSocket connects to a socket by a short name: its path may be longer than an address
// can be.
func dialSocket(path string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}
