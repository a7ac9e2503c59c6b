//! Handing a descriptor to another process over a socket.

use std::ffi::c_int;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::check;

/// Sends one byte and a descriptor over a socket.
pub(in crate::limit) fn send_descriptor(
    socket: BorrowedFd<'_>,
    sent: BorrowedFd<'_>,
) -> io::Result<()> {
    let mut byte = [0_u8];
    let mut room = ControlRoom::default();
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: the header points to live locals; the control room is aligned and large enough for one descriptor, so
    // the first header exists.
    unsafe {
        let message = room.message(&mut part);
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast::<RawFd>(), sent.as_raw_fd());
        let count = libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL);
        check(count as c_int).map(drop)
    }
}

/// Receives one byte and the descriptor that comes with it.
pub(in crate::limit) fn receive_descriptor(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut byte = [0_u8];
    let mut room = ControlRoom::default();
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: as in `send_descriptor`; a descriptor is taken only from a header that says it carries one, and the kernel
    // made it for us alone.
    unsafe {
        let mut message = room.message(&mut part);
        let count = libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC);
        check(count as c_int)?;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null()
            || (*header).cmsg_level != libc::SOL_SOCKET
            || (*header).cmsg_type != libc::SCM_RIGHTS
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let received = ptr::read_unaligned(libc::CMSG_DATA(header).cast::<RawFd>());
        Ok(OwnedFd::from_raw_fd(received))
    }
}

/// Room for the ancillary data of one descriptor, aligned as its header wants.
#[derive(Default)]
struct ControlRoom([u64; 4]);

impl ControlRoom {
    fn message(&mut self, part: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: all-zero is a valid msghdr: no name, no flags.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = part;
        message.msg_iovlen = 1;
        message.msg_control = self.0.as_mut_ptr().cast();
        // SAFETY: plain arithmetic.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as _;
        message
    }
}
