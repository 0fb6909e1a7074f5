package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/roost-batch/roost/classad"
)

// hostileMark stands in the texts of the fake schedd for the next payload.
const hostileMark = "\ue000"

// hostileDepth bounds how deep messages that a reply lacks are filled in.
const hostileDepth = 4

// hostileText puts payloads into every string of what a schedd sends, one after the
// other. Each has its number behind it, so that what a page shows can be compared.
type hostileText struct {
	payloads []string
	next     int
}

func payloadNumber(i int) string { return fmt.Sprintf("⟦%d⟧", i) }

func (h *hostileText) take() string {
	i := h.next % len(h.payloads)
	h.next++
	return h.payloads[i] + payloadNumber(i)
}

// fill changes a message.
func (h *hostileText) fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if c := f.ContainingOneof(); c != nil && !c.IsSynthetic() && !m.Has(f) {
			continue
		}
		switch {
		case f.IsMap():
		case f.IsList():
			h.fillList(m, f, depth)
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(h.text(m.Get(f).String())))
		case f.Kind() == protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes(h.document(m.Get(f).Bytes())))
		case f.Kind() == protoreflect.MessageKind && (m.Has(f) || depth < hostileDepth):
			h.fill(m.Mutable(f).Message(), depth+1)
		}
	}
}

func (h *hostileText) fillList(m protoreflect.Message, f protoreflect.FieldDescriptor, depth int) {
	if !m.Has(f) && depth >= hostileDepth {
		return
	}
	switch list := m.Mutable(f).List(); f.Kind() {
	case protoreflect.StringKind:
		if list.Len() == 0 {
			list.Append(protoreflect.ValueOfString(""))
		}
		for i := range list.Len() {
			list.Set(i, protoreflect.ValueOfString(h.text(list.Get(i).String())))
		}
	case protoreflect.MessageKind:
		if list.Len() == 0 {
			list.AppendMutable()
		}
		for i := range list.Len() {
			h.fill(list.Get(i).Message(), depth+1)
		}
	}
}

// text returns what a string becomes. What has a meaning stays: ids, states, ads.
func (h *hostileText) text(now string) string {
	switch {
	case now == "" || now == hostileMark:
		return h.take()
	case !strings.HasPrefix(now, "["):
		return now
	}
	ad, err := classad.Parse(now)
	if err != nil {
		return now
	}
	for name := range ad.All() {
		if s, ok := ad.Str(name); ok && s == hostileMark {
			ad.SetString(name, h.take())
		}
	}
	return ad.String()
}

// document replaces the marks in a JSON document, or in the output of a task.
func (h *hostileText) document(text []byte) []byte {
	isJSON := json.Valid(text)
	for bytes.Contains(text, []byte(hostileMark)) {
		payload := []byte(h.take())
		if isJSON {
			quoted, _ := json.Marshal(string(payload))
			payload = quoted[1 : len(quoted)-1]
		}
		text = bytes.Replace(text, []byte(hostileMark), payload, 1)
	}
	return text
}

// interceptors put payloads into replies, where f has some. Logins stay as they are.
func (f *fakeSchedd) interceptors() []grpc.ServerOption {
	spoil := func(method string, reply any) {
		f.mu.Lock()
		defer f.mu.Unlock()
		name := method[strings.LastIndex(method, "/")+1:]
		if m, ok := reply.(proto.Message); ok && f.hostile != nil &&
			!slices.Contains([]string{"Login", "BeginLogin", "Logout", "LoginToken"}, name) {
			f.hostile.fill(m.ProtoReflect(), 0)
		}
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, q any, i *grpc.UnaryServerInfo,
			next grpc.UnaryHandler) (any, error) {
			reply, err := next(ctx, q)
			if err == nil {
				spoil(i.FullMethod, reply)
			}
			return reply, err
		}),
		grpc.ChainStreamInterceptor(func(srv any, s grpc.ServerStream, i *grpc.StreamServerInfo,
			next grpc.StreamHandler) error {
			return next(srv, spoiledStream{s, func(reply any) { spoil(i.FullMethod, reply) }})
		}),
	}
}

// spoiledStream changes what is sent.
type spoiledStream struct {
	grpc.ServerStream
	spoil func(any)
}

func (s spoiledStream) SendMsg(m any) error {
	s.spoil(m)
	return s.ServerStream.SendMsg(m)
}
