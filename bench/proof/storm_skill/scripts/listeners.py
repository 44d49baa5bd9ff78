"""Many listening sockets."""

import socket

held = []
for _ in range(40):
    each = socket.socket()
    each.bind(('127.0.0.1', 0))
    each.listen()
    held.append(each)
print('done')
