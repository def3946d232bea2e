/* lat_sockets: see sockets.h. Owns a slot for each descriptor that was ever waited for; loop thread only. */
#include "transport/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_CAP = 32 };

struct lat_socket_slot {
	lat_watch watch; /* first */
	lat_sockets *sockets;
	unsigned wanted; /* what is waited for; 0: nothing, the watch is only kept */
	bool ours;       /* opened by lat_sockets_open */
};

static lat_socket_slot *find(const lat_sockets *s, int fd)
{
	return (size_t)fd < s->cap ? s->slots[fd] : NULL;
}

static bool grow(lat_sockets *s, size_t at_least)
{
	size_t cap = s->cap ? s->cap : FIRST_CAP;
	while (cap < at_least)
		cap *= 2;
	lat_socket_slot **slots = realloc(s->slots, cap * sizeof(lat_socket_slot *));
	if (!slots)
		return false;
	memset(slots + s->cap, 0, (cap - s->cap) * sizeof(lat_socket_slot *));
	s->slots = slots;
	s->cap = cap;
	return true;
}

static void ready(lat_watch *watch, unsigned events)
{
	lat_socket_slot *slot = (lat_socket_slot *)watch;
	lat_sockets *s = slot->sockets;
	if (!slot->wanted) { /* an idle connection: the peer hung up, or speaks unasked */
		lat_watch_remove(s->loop, watch);
		return;
	}
	if (events & LAT_HANGUP) /* what it is, shows by the call that was to be made */
		events |= slot->wanted;
	s->ready(s->owner, watch->fd, events & (LAT_READABLE | LAT_WRITABLE));
}

static lat_socket_slot *get(lat_sockets *s, int fd)
{
	if ((size_t)fd >= s->cap && !grow(s, (size_t)fd + 1))
		return NULL;
	if (!s->slots[fd]) {
		lat_socket_slot *slot = calloc(1, sizeof *slot);
		if (!slot)
			return NULL;
		slot->watch = (lat_watch){.fd = fd, .ready = ready};
		slot->sockets = s;
		s->slots[fd] = slot;
	}
	return s->slots[fd];
}

static void clear(lat_socket_slot *slot)
{
	lat_watch_remove(slot->sockets->loop, &slot->watch);
	slot->wanted = 0;
	slot->ours = false;
}

void lat_sockets_free(lat_sockets *s)
{
	for (size_t i = 0; i < s->cap; i++)
		free(s->slots[i]);
	free(s->slots);
	s->slots = NULL;
	s->cap = 0;
}

int lat_sockets_open(lat_sockets *s, int family, int type, int protocol)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -1;
	lat_socket_slot *slot = get(s, fd);
	if (!slot) {
		close(fd);
		errno = ENOMEM;
		return -1;
	}
	clear(slot);
	slot->ours = true;
	return fd;
}

int lat_sockets_close(lat_sockets *s, int fd)
{
	lat_socket_slot *slot = find(s, fd);
	if (slot)
		clear(slot);
	return close(fd);
}

bool lat_sockets_watch(lat_sockets *s, int fd, unsigned events, bool foreign)
{
	lat_socket_slot *slot = get(s, fd);
	if (!slot)
		return false;
	if (foreign)
		slot->ours = false;
	if (lat_watch_set(s->loop, &slot->watch, events, NULL) != LAT_OK)
		return false;
	slot->wanted = events;
	return true;
}

void lat_sockets_unwatch(lat_sockets *s, int fd, bool may_stay)
{
	lat_socket_slot *slot = find(s, fd);
	if (slot && slot->ours && may_stay)
		slot->wanted = 0;
	else if (slot)
		clear(slot);
}
