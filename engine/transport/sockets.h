/* lat_sockets: the descriptors that libcurl waits for, watched by the loop.
 *
 * System calls are what a small exchange costs most, so the socket of a connection that falls idle stays in
 * epoll: libcurl says "remove" after each reply and "add" at the next request, but only a socket that becomes
 * readable meanwhile (its peer has hung up) is really taken out. That is allowed for sockets whose end
 * lat_sockets_close is told of; libcurl closes others without a word (the resolver's wake-up, a connection
 * that doesn't come about, the slower one of two tries).
 *
 * Loop thread only. */
#ifndef LAT_TRANSPORT_SOCKETS_H
#define LAT_TRANSPORT_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>

#include "scheduler/loop.h"

typedef struct lat_socket_slot lat_socket_slot;

typedef struct {
	lat_loop *loop;
	void (*ready)(void *owner, int fd, unsigned events); /* LAT_READABLE, LAT_WRITABLE */
	void *owner;
	/* private */
	lat_socket_slot **slots; /* by descriptor */
	size_t cap;
} lat_sockets;

void lat_sockets_free(lat_sockets *sockets); /* when all descriptors are closed */

/* A socket like socket(2)'s, close-on-exec, with a place made for it: -1 and errno. */
int lat_sockets_open(lat_sockets *sockets, int family, int type, int protocol);
int lat_sockets_close(lat_sockets *sockets, int fd);

/* Waits for events on fd, which somebody else opened when `foreign`. False when out of memory. */
bool lat_sockets_watch(lat_sockets *sockets, int fd, unsigned events, bool foreign);
/* Waits no more; may_stay: its connection stands, and will be closed by lat_sockets_close. */
void lat_sockets_unwatch(lat_sockets *sockets, int fd, bool may_stay);

#endif
