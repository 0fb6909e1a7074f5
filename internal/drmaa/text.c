/* Texts that grow, and lists of texts. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roost_drmaa.h"

void text_add_bytes(struct text *t, const char *s, size_t size)
{
	if (t->failed)
		return;
	if (size > SIZE_MAX / 4 - t->size) {
		t->failed = true;
		return;
	}
	if (t->size + size + 1 > t->room) {
		size_t room = (t->size + size + 1) * 2;
		char *data = realloc(t->data, room);
		if (data == NULL) {
			t->failed = true;
			return;
		}
		t->data = data;
		t->room = room;
	}
	if (size > 0)
		memcpy(t->data + t->size, s, size);
	t->size += size;
	t->data[t->size] = 0;
}

void text_add(struct text *t, const char *s) { text_add_bytes(t, s, strlen(s)); }

void text_addf(struct text *t, const char *format, ...)
{
	char *line = NULL;
	va_list arguments;
	va_start(arguments, format);
	int size = vasprintf(&line, format, arguments);
	va_end(arguments);
	if (size < 0) {
		t->failed = true;
		return;
	}
	text_add_bytes(t, line, (size_t)size);
	free(line);
}

/* utf8_size is the number of bytes of the character at s, 0 if there is none. */
static size_t utf8_size(const unsigned char *s)
{
	if (s[0] < 0x80)
		return 1;
	size_t size = s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
	for (size_t i = 1; i < size; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (size == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)))
		return 0;
	if (size == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)))
		return 0;
	return size;
}

void text_add_json(struct text *t, const char *s)
{
	text_add_bytes(t, "\"", 1);
	for (const unsigned char *p = (const unsigned char *)s; *p;) {
		size_t size = utf8_size(p);
		if (size == 0) {
			text_add(t, "\\ufffd");
			p++;
			continue;
		}
		if (*p == '"' || *p == '\\')
			text_addf(t, "\\%c", *p);
		else if (*p < 0x20)
			text_addf(t, "\\u%04x", *p);
		else
			text_add_bytes(t, (const char *)p, size);
		p += size;
	}
	text_add_bytes(t, "\"", 1);
}

void text_free(struct text *t)
{
	free(t->data);
	*t = (struct text){0};
}

bool list_add(struct list *l, const char *s)
{
	if (l->count == l->room) {
		size_t room = l->room * 2 + 8;
		char **items = realloc(l->items, room * sizeof *items);
		if (items == NULL)
			return false;
		l->items = items;
		l->room = room;
	}
	char *copy = strdup(s);
	if (copy == NULL)
		return false;
	l->items[l->count++] = copy;
	return true;
}

void list_free(struct list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->items[i]);
	free(l->items);
	*l = (struct list){0};
}

int list_next(struct list *l, char *value, size_t room)
{
	if (l->next >= l->count)
		return DRMAA_ERRNO_NO_MORE_ELEMENTS;
	copy_text(value, room, l->items[l->next++]);
	return DRMAA_ERRNO_SUCCESS;
}

static int next_of(struct list *l, char *value, size_t room)
{
	if (l == NULL || value == NULL)
		return DRMAA_ERRNO_INVALID_ARGUMENT;
	return list_next(l, value, room);
}

static int count_of(const struct list *l, size_t *size)
{
	if (l == NULL || size == NULL)
		return DRMAA_ERRNO_INVALID_ARGUMENT;
	*size = l->count;
	return DRMAA_ERRNO_SUCCESS;
}

#define LIST_OF(values) ((values) == NULL ? NULL : &(values)->list)

int drmaa_get_next_attr_name(drmaa_attr_names_t *values, char *value, size_t value_len)
{
	return next_of(LIST_OF(values), value, value_len);
}

int drmaa_get_next_attr_value(drmaa_attr_values_t *values, char *value, size_t value_len)
{
	return next_of(LIST_OF(values), value, value_len);
}

int drmaa_get_next_job_id(drmaa_job_ids_t *values, char *value, size_t value_len)
{
	return next_of(LIST_OF(values), value, value_len);
}

int drmaa_get_num_attr_names(drmaa_attr_names_t *values, size_t *size) { return count_of(LIST_OF(values), size); }

int drmaa_get_num_attr_values(drmaa_attr_values_t *values, size_t *size) { return count_of(LIST_OF(values), size); }

int drmaa_get_num_job_ids(drmaa_job_ids_t *values, size_t *size) { return count_of(LIST_OF(values), size); }

#define RELEASE(values)                          \
	do {                                     \
		if ((values) != NULL) {          \
			list_free(&(values)->list); \
			free(values);            \
		}                                \
	} while (0)

void drmaa_release_attr_names(drmaa_attr_names_t *values) { RELEASE(values); }

void drmaa_release_attr_values(drmaa_attr_values_t *values) { RELEASE(values); }

void drmaa_release_job_ids(drmaa_job_ids_t *values) { RELEASE(values); }
