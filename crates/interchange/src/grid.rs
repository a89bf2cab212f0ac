//! Regular grids of chunks, for writers.

use spile_core::Order;

/// The index of the element `number` of a grid, in C order.
pub fn unravel(mut number: u64, grid: &[u64]) -> Vec<u64> {
    let mut index = vec![0; grid.len()];
    for (k, length) in grid.iter().enumerate().rev() {
        index[k] = number % length;
        number /= length;
    }
    index
}

/// First index and lengths of the part of an array with the lengths `array` that is in the chunk with this index.
pub fn chunk_part(array: &[u64], chunk: &[u64], index: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let start: Vec<u64> = index.iter().zip(chunk).map(|(k, n)| k * n).collect();
    let rest = start.iter().zip(array).map(|(start, end)| end - start);
    let lengths = rest.zip(chunk).map(|(rest, n)| rest.min(*n)).collect();
    (start, lengths)
}

/// A complete chunk: the elements of `part`, of `size` bytes, at its beginning along all dimensions, and zeros.
pub fn padded(part: Vec<u8>, lengths: &[u64], chunk: &[u64], order: Order, size: usize) -> Vec<u8> {
    if lengths == chunk {
        return part;
    }
    let axes = order.slowest_first(chunk.len());
    let lengths: Vec<u64> = axes.iter().map(|axis| lengths[*axis]).collect();
    let chunk: Vec<u64> = axes.iter().map(|axis| chunk[*axis]).collect();
    let mut padded = vec![0; chunk.iter().product::<u64>() as usize * size];
    let Some((row, outer)) = lengths.split_last() else { return padded };
    for (number, row) in part.chunks_exact((*row as usize * size).max(1)).enumerate() {
        let index = unravel(number as u64, outer);
        let first = index.iter().zip(&chunk).fold(0, |at, (k, n)| at * n + k);
        let at = (first * chunk[chunk.len() - 1]) as usize * size;
        padded[at..at + row.len()].copy_from_slice(row);
    }
    padded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_padded_along_all_dimensions() {
        let part = vec![1, 2, 3, 4];
        let c = padded(part.clone(), &[2, 2], &[3, 4], Order::C, 1);
        assert_eq!(c, [1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0]);
        let f = padded(part.clone(), &[2, 2], &[3, 4], Order::F, 1);
        assert_eq!(f, [1, 2, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0]);
        let two_bytes = padded(part, &[2, 1, 1], &[2, 2, 1], Order::C, 2);
        assert_eq!(two_bytes, [1, 2, 0, 0, 3, 4, 0, 0]);
    }

    #[test]
    fn the_last_chunks_end_with_the_array() {
        assert_eq!(unravel(5, &[2, 3]), [1, 2]);
        assert_eq!(chunk_part(&[5, 7], &[3, 3], &[1, 2]), (vec![3, 6], vec![2, 1]));
    }
}
